//! The library as Envoy loads it.

use std::fs;
use std::path::PathBuf;

use http::HeaderMap;

use super::examples::validate_with;
use crate::cast::{App, Client, Envoy, Filters, Protocol, Retries, Sidecar, module_dir, scratch};

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

/// The library in a folder of its own, asking for callbacks that no Envoy has in place of these.
fn library_without(callbacks: &[&str]) -> PathBuf {
    let dir = scratch();
    fs::create_dir_all(&dir).unwrap();
    let mut library = fs::read(module_dir().join("libonus_envoy_module.so")).unwrap();
    for callback in callbacks {
        let name = format!("envoy_dynamic_module_callback_{callback}\0");
        let at = library.windows(name.len()).position(|window| window == name.as_bytes());
        let at = at.expect("the library asks for it");
        library[at..at + name.len() - 1].fill(b'x');
    }
    fs::write(dir.join("libonus_envoy_module.so"), library).unwrap();
    dir
}

/// A service with all filters, whose callee is itself.
fn sidecar<'a>(binary: &std::path::Path, app: &App, filters: &'a Filters) -> Sidecar<'a> {
    Sidecar {
        service: "a",
        protocol: Protocol::Http1,
        app: app.address,
        callee: ("a", app.address),
        retries: Retries::On5xx(1),
        filters,
        old: Envoy::is_old(binary),
    }
}

#[tokio::test]
async fn a_callback_that_envoy_lacks_degrades_a_feature_and_is_told_once() {
    let Some(binary) = Envoy::binary("a_callback_that_envoy_lacks") else { return };
    let app = App::failing(Protocol::Http1).await;
    let filters = Filters::Attempts("enforce", "{attempts: 2}");
    let config = sidecar(&binary, &app, &filters).yaml();
    const LIMITS: &str = "keeps no state for filters of attempts";
    const COUNTERS: &str = "takes no counters from filters";
    const ATTEMPTS: &str = "does not tell filters of its attempts";
    const ALL: [(&str, &str); 8] = [
        ("http_set_filter_state_bytes", LIMITS),
        ("http_get_filter_state_bytes", LIMITS),
        ("http_send_response", "lets no filter answer"),
        ("http_filter_get_attribute_int", ATTEMPTS),
        ("http_filter_get_attribute_string", "does not tell filters of its routes"),
        ("http_filter_config_define_counter", COUNTERS),
        ("http_filter_increment_counter", COUNTERS),
        ("get_log_level", ATTEMPTS),
    ];
    for (callback, says) in ALL {
        // What tells whether a line is wanted may be lacking as well.
        let dir = library_without(&[callback, "log_enabled"]);
        let (taken, log) = validate_with(&binary, &config, &dir).await;
        assert!(taken, "{callback}: {log}");
        assert_eq!(log.matches(says).count(), 1, "{callback}: {log}");
        fs::remove_dir_all(&dir).unwrap();
    }
    let dir = library_without(&ALL.map(|(callback, _)| callback));
    let envoy = Envoy::start_with(&binary, &config, &dir).await;
    let client = Client::new(Protocol::Http1);
    let seen = client.send(envoy.port("inbound"), &HeaderMap::new()).await.unwrap();
    assert!(seen.line("onus-claim").starts_with("claimed;reason=own"), "{seen:?}");
    let seen = client.send(envoy.port("outbound"), &HeaderMap::new()).await.unwrap();
    assert_eq!((seen.status, app.handled()), (500, 3), "Envoy retries as it does: {seen:?}");
    fs::remove_dir_all(&dir).unwrap();
}

#[tokio::test]
async fn an_envoy_that_is_not_supported_is_told_which_are() {
    let Some(binary) = Envoy::binary("an_envoy_that_is_not_supported") else { return };
    let app = App::failing(Protocol::Http1).await;
    let filters = Filters::module("enforce");
    let config = sidecar(&binary, &app, &filters).yaml();
    for callback in ["http_get_headers", "http_get_headers_size", "http_get_cluster_name"] {
        let dir = library_without(&[callback]);
        let (taken, log) = validate_with(&binary, &config, &dir).await;
        assert!(!taken && log.contains("it works with Envoy 1.38, 1.39 and 1.40"), "{log}");
        assert!(log.contains(callback), "what is lacking: {log}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
