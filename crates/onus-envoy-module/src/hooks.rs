//! The functions that Envoy calls. A hook never lets a panic out: the stream goes on as if there
//! were no filter.

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use onus_envoy::Head;

use crate::abi::{Buffer, Callbacks, EnvoyConfig, EnvoyFilter};
use crate::chance::Chance;
use crate::clock;
use crate::envoy_counters::{EnvoyCounters, Ids};
use crate::envoy_stream::EnvoyStream;
#[cfg(feature = "fault-injection")]
use crate::fault;
use crate::filter::{Config, Filter};
use crate::log;

/// Every hook's answer that lets the stream go on: they are all zero.
const CONTINUE: u32 = 0;
/// The answer of a hook for a head that goes no further, or not before a later hook lets it.
const HOLD: u32 = 1;

const fn answer(head: Head) -> u32 {
    match head {
        Head::Passes => CONTINUE,
        Head::Held => HOLD,
    }
}

/// Runs a hook; nothing, told in the log, if it panics.
fn hook<T>(run: impl FnOnce() -> Option<T>) -> Option<T> {
    catch_unwind(AssertUnwindSafe(run)).ok().flatten()
}

/// Runs a hook of a stream with its filter.
///
/// # Safety
///
/// `envoy` must be what Envoy has handed to the hook that is running, and `filter` what
/// `envoy_dynamic_module_on_http_filter_new` returned for it.
#[cfg_attr(
    not(feature = "fault-injection"),
    expect(unused_variables, reason = "only a test breaks a hook by its name")
)]
unsafe fn with_filter(
    hook_name: &str,
    envoy: EnvoyFilter,
    filter: *const c_void,
    run: impl FnOnce(&mut Filter, &mut EnvoyStream),
) -> u32 {
    let Some(callbacks) = Callbacks::get() else { return CONTINUE };
    // SAFETY: Envoy runs one hook of a filter at a time, and does not use what it points to.
    let Some(filter) = (unsafe { filter.cast_mut().cast::<Filter>().as_mut() }) else {
        return CONTINUE;
    };
    let ran = hook(|| {
        // SAFETY: it was handed to the hook that is running.
        let mut stream = unsafe { EnvoyStream::new(callbacks, envoy) };
        #[cfg(feature = "fault-injection")]
        fault::strike(hook_name, &stream);
        run(filter, &mut stream);
        Some(())
    });
    if ran.is_none() {
        hook(|| {
            // SAFETY: as above; the first one is gone.
            let stream = unsafe { EnvoyStream::new(callbacks, envoy) };
            match filter {
                Filter::Inbound(filter) => filter.on_fault(&stream),
                Filter::Outbound(filter) => filter.on_fault(),
                Filter::Attempt(filter) => filter.on_fault(),
                Filter::Nothing => {}
            }
            Some(())
        });
    }
    CONTINUE
}

/// The library is loaded: the version of the interface, or nothing where this is no Envoy that is
/// supported.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    let version = hook(|| {
        let callbacks = Callbacks::find().map_err(log::unsupported).ok()?;
        log::start(callbacks);
        Some(if callbacks.is_1_40 { c"v0.2.0" } else { c"v0.1.0" })
    });
    version.map_or(std::ptr::null(), |version| version.as_ptr())
}

/// A filter is configured.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    envoy: EnvoyConfig,
    name: Buffer,
    text: Buffer,
) -> *const c_void {
    let config = hook(|| {
        // SAFETY: Envoy keeps it until the hook ends.
        let name = unsafe { name.bytes() };
        // SAFETY: as above.
        let text = unsafe { text.bytes() };
        // SAFETY: it was handed to this hook.
        let ids = unsafe { Ids::define(Callbacks::get()?, envoy) };
        match Config::new(name, text, ids) {
            Ok(config) => Some(Box::new(config)),
            Err(error) => {
                log::refused(name, &error);
                None
            }
        }
    });
    config.map_or(std::ptr::null(), |config| Box::into_raw(config).cast_const().cast())
}

/// A filter's configuration is no longer needed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: *const c_void) {
    hook(|| {
        // SAFETY: it came from `config_new`, and Envoy hands it over once.
        drop(unsafe { Box::from_raw(config.cast_mut().cast::<Config>()) });
        Some(())
    });
}

/// A stream begins.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_new(
    config: *const c_void,
    envoy: EnvoyFilter,
) -> *const c_void {
    let filter = hook(|| {
        // SAFETY: it came from `config_new`, and Envoy keeps it while there are filters of it.
        let config = unsafe { config.cast::<Config>().as_ref() }?;
        // SAFETY: the filter is new, of this configuration, and was handed to this hook.
        let mut counters = unsafe { EnvoyCounters::new(Callbacks::get()?, envoy, &config.ids) };
        config.service().export(&mut counters, clock::now());
        Some(config.filter())
    });
    // A null would close the stream.
    let filter = Box::new(filter.unwrap_or(Filter::Nothing));
    Box::into_raw(filter).cast_const().cast()
}

/// The filter of a stream is no longer needed.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_destroy(filter: *const c_void) {
    hook(|| {
        // SAFETY: it came from `filter_new`, and Envoy hands it over once.
        let filter = unsafe { Box::from_raw(filter.cast_mut().cast::<Filter>()) };
        // Envoy tells the filter of an attempt of no other end.
        if let Filter::Attempt(mut filter) = *filter {
            filter.on_end(&Chance);
        }
        Some(())
    });
}

/// The head of a request.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    envoy: EnvoyFilter,
    filter: *const c_void,
    ends: bool,
) -> u32 {
    let mut head = Head::Passes;
    let run = |filter: &mut Filter, stream: &mut EnvoyStream| match filter {
        Filter::Inbound(filter) => filter.on_request(stream),
        Filter::Outbound(filter) => filter.on_request(stream, ends),
        Filter::Attempt(filter) => head = filter.on_request(stream, ends),
        Filter::Nothing => {}
    };
    // SAFETY: both are as Envoy has handed them over.
    unsafe { with_filter("request_headers", envoy, filter, run) };
    answer(head)
}

/// A part of a request's body.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_body(
    envoy: EnvoyFilter,
    filter: *const c_void,
    ends: bool,
) -> u32 {
    if !ends {
        return CONTINUE;
    }
    // SAFETY: both are as Envoy has handed them over.
    unsafe { request_ended(envoy, filter) }
}

/// A request has been seen to its end.
///
/// # Safety
///
/// As for [`with_filter`].
unsafe fn request_ended(envoy: EnvoyFilter, filter: *const c_void) -> u32 {
    let run = |filter: &mut Filter, _: &mut EnvoyStream| match filter {
        Filter::Attempt(filter) => filter.on_request_end(),
        Filter::Inbound(_) | Filter::Outbound(_) | Filter::Nothing => {}
    };
    // SAFETY: as the caller promises.
    unsafe { with_filter("request_end", envoy, filter, run) }
}

/// The trailers of a request.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_request_trailers(
    envoy: EnvoyFilter,
    filter: *const c_void,
) -> u32 {
    // SAFETY: both are as Envoy has handed them over.
    unsafe { request_ended(envoy, filter) }
}

/// The head of a response.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    envoy: EnvoyFilter,
    filter: *const c_void,
    ends: bool,
) -> u32 {
    let mut head = Head::Passes;
    let run = |filter: &mut Filter, stream: &mut EnvoyStream| match filter {
        Filter::Inbound(filter) => filter.on_response(stream, ends),
        Filter::Outbound(filter) => filter.on_response(stream, ends),
        Filter::Attempt(filter) => head = filter.on_response(stream),
        Filter::Nothing => {}
    };
    // SAFETY: both are as Envoy has handed them over.
    unsafe { with_filter("response_headers", envoy, filter, run) };
    answer(head)
}

/// A part of a response's body.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    envoy: EnvoyFilter,
    filter: *const c_void,
    ends: bool,
) -> u32 {
    // SAFETY: both are as Envoy has handed them over.
    unsafe {
        with_filter("response_body", envoy, filter, |filter, _| match filter {
            Filter::Inbound(filter) => filter.on_body(ends),
            Filter::Outbound(filter) => filter.on_body(ends),
            Filter::Attempt(filter) => filter.on_body(),
            Filter::Nothing => {}
        })
    }
}

/// The trailers of a response.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_response_trailers(
    envoy: EnvoyFilter,
    filter: *const c_void,
) -> u32 {
    // SAFETY: both are as Envoy has handed them over.
    unsafe {
        with_filter("response_trailers", envoy, filter, |filter, stream| match filter {
            Filter::Inbound(filter) => filter.on_trailers(stream),
            Filter::Outbound(filter) => filter.on_trailers(stream),
            Filter::Attempt(filter) => filter.on_trailers(stream),
            Filter::Nothing => {}
        })
    }
}

/// A stream is over.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn envoy_dynamic_module_on_http_filter_stream_complete(
    envoy: EnvoyFilter,
    filter: *const c_void,
) {
    // SAFETY: both are as Envoy has handed them over.
    unsafe {
        with_filter("stream_complete", envoy, filter, |filter, stream| match filter {
            Filter::Inbound(filter) => filter.on_end(stream),
            Filter::Outbound(filter) => filter.on_end(stream),
            Filter::Attempt(_) | Filter::Nothing => {}
        });
    }
}

/// Hooks for what no filter of ours asks for, which Envoy wants to be there all the same.
macro_rules! unused {
    ($($name:ident),* $(,)?) => { $(
        #[doc = "Never called: it answers what this module does not ask for."]
        #[unsafe(no_mangle)]
        pub(crate) extern "C" fn $name() {}
    )* };
}

unused!(
    envoy_dynamic_module_on_http_filter_http_callout_done,
    envoy_dynamic_module_on_http_filter_http_stream_headers,
    envoy_dynamic_module_on_http_filter_http_stream_data,
    envoy_dynamic_module_on_http_filter_http_stream_trailers,
    envoy_dynamic_module_on_http_filter_http_stream_complete,
    envoy_dynamic_module_on_http_filter_http_stream_reset,
    envoy_dynamic_module_on_http_filter_scheduled,
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark,
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark,
);
