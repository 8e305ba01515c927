//! The library as Envoy loads it.

use std::fs;

use crate::cast::module_dir;

#[test]
fn the_library_needs_nothing_but_libc() {
    // Distroless images of Envoy have no more. The names of libraries stand in the file as they are.
    let library = fs::read(module_dir().join("libonus_envoy_module.so")).unwrap();
    let names = |name: &str| library.windows(name.len()).any(|window| window == name.as_bytes());
    assert!(names("libc.so.6"));
    for other in ["libgcc_s.so.1", "libstdc++.so", "libm.so.6", "libdl.so"] {
        assert!(!names(other), "{other}");
    }
}

#[test]
fn the_library_has_every_hook_that_envoy_asks_for() {
    let library = fs::read(module_dir().join("libonus_envoy_module.so")).unwrap();
    for hook in [
        "program_init",
        "http_filter_config_new",
        "http_filter_config_destroy",
        "http_filter_new",
        "http_filter_destroy",
        "http_filter_request_headers",
        "http_filter_request_body",
        "http_filter_request_trailers",
        "http_filter_response_headers",
        "http_filter_response_body",
        "http_filter_response_trailers",
        "http_filter_stream_complete",
        "http_filter_http_callout_done",
        "http_filter_http_stream_headers",
        "http_filter_http_stream_data",
        "http_filter_http_stream_trailers",
        "http_filter_http_stream_complete",
        "http_filter_http_stream_reset",
        "http_filter_scheduled",
        "http_filter_downstream_above_write_buffer_high_watermark",
        "http_filter_downstream_below_write_buffer_low_watermark",
    ] {
        let name = format!("\0envoy_dynamic_module_on_{hook}\0");
        let has = library.windows(name.len()).any(|window| window == name.as_bytes());
        assert!(has, "{hook}");
    }
}
