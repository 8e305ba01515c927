//! A dynamic module whose filter does nothing.

use std::ffi::{c_char, c_void};
use std::ptr;

/// Bytes, as Envoy hands them over.
#[repr(C)]
struct Buffer {
    _ptr: *const u8,
    _len: usize,
}

/// Something to point at.
static NOTHING: u8 = 0;

/// The version of the interface.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    c"v0.2.0".as_ptr()
}

/// A configuration without anything in it.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    _: *mut c_void,
    _: Buffer,
    _: Buffer,
) -> *const c_void {
    ptr::from_ref(&NOTHING).cast()
}

/// A filter without anything in it.
#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_http_filter_new(
    _: *const c_void,
    _: *mut c_void,
) -> *const c_void {
    ptr::from_ref(&NOTHING).cast()
}

/// Hooks that answer zero, which lets the stream go on.
macro_rules! empty {
    ($($name:ident),* $(,)?) => { $(
        #[doc = "Does nothing."]
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> u32 {
            0
        }
    )* };
}

empty!(
    envoy_dynamic_module_on_http_filter_config_destroy,
    envoy_dynamic_module_on_http_filter_destroy,
    envoy_dynamic_module_on_http_filter_request_headers,
    envoy_dynamic_module_on_http_filter_request_body,
    envoy_dynamic_module_on_http_filter_request_trailers,
    envoy_dynamic_module_on_http_filter_response_headers,
    envoy_dynamic_module_on_http_filter_response_body,
    envoy_dynamic_module_on_http_filter_response_trailers,
    envoy_dynamic_module_on_http_filter_stream_complete,
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
