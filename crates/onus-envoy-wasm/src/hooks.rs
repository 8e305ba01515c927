//! The functions that Envoy calls.
//!
//! Envoy enters the plugin for each function that is there, at a cost that a filter's own work is
//! small beside: so there are none that would do nothing. Bodies are not looked at; whether an
//! answer came to its end is in the flags that Envoy sets when it does not.

use crate::contexts;
use crate::log;
use crate::plugin::Plugin;

/// The answer of a hook that lets the stream go on.
const CONTINUE: u32 = 0;

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// The plugin is loaded.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn _initialize() {
    // SAFETY: Envoy calls this once, before all else, as the linker's function wants.
    unsafe { __wasm_call_ctors() };
    log::start();
}

/// A plugin begins where `parent` is 0, else a stream of the plugin that `parent` is.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_context_create(id: u32, parent: u32) {
    if parent != 0 {
        contexts::stream_begins(id, parent);
    }
}

/// A plugin is configured; whether its configuration can be meant.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_configure(id: u32, _: usize) -> bool {
    match Plugin::configured() {
        Ok(plugin) => {
            contexts::configured(id, plugin);
            true
        }
        Err(error) => {
            tracing::error!("onus: {error}");
            false
        }
    }
}

/// A moment has passed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_tick(id: u32) {
    contexts::tick(id);
}

/// The head of a request.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_request_headers(id: u32, _: usize, ends: bool) -> u32 {
    contexts::with(id, |context| context.on_request(ends));
    CONTINUE
}

/// The head of a response.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_response_headers(id: u32, _: usize, ends: bool) -> u32 {
    contexts::with(id, |context| context.on_response(ends));
    CONTINUE
}

/// The trailers of a response.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_response_trailers(id: u32, _: usize) -> u32 {
    contexts::with(id, |context| context.on_trailers());
    CONTINUE
}

/// A plugin or a stream is over.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_delete(id: u32) {
    if let Some(mut context) = contexts::remove(id) {
        context.on_end();
    }
}
