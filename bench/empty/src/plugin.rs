//! A Wasm plugin that does nothing, with the hooks of that of Onus.

unsafe extern "C" {
    fn __wasm_call_ctors();
}

/// The plugin is loaded.
#[unsafe(no_mangle)]
extern "C" fn _initialize() {
    // SAFETY: Envoy calls this once, before all else, as the linker's function wants.
    unsafe { __wasm_call_ctors() };
}

/// The version of the interface.
#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

/// Never called, as nothing is asked for; Envoy wants it to be there.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(_: usize) -> *mut u8 {
    std::ptr::null_mut()
}

/// A stream begins.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(_: u32, _: u32) {}

/// The head of a request, which goes on.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(_: u32, _: usize, _: bool) -> u32 {
    0
}

/// The head of a response, which goes on.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(_: u32, _: usize, _: bool) -> u32 {
    0
}

/// The trailers of a response, which go on.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_trailers(_: u32, _: usize) -> u32 {
    0
}

/// A stream is over.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_delete(_: u32) {}
