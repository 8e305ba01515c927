//! The files that others published, which are no part of the project.

use std::fs;
use std::path::{Path, PathBuf};

use onus_retry_config::{Attempts, Import, RetryConfig};

use super::check;

/// Reads files of the shared folder. Says so where it is missing.
#[expect(clippy::print_stdout, reason = "whoever runs the tests reads what was skipped")]
fn read(names: &[&str]) -> Option<RetryConfig> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("ONUS_DATA").map_or(beside, PathBuf::from);
    let folder = data.join("retry-configs");
    if !folder.is_dir() {
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(!required, "{} is missing", folder.display());
        println!("skipped: there is no folder {} (ONUS_DATA names another)", folder.display());
        return None;
    }
    let mut import = Import::default();
    for name in names {
        import.read(name, &fs::read_to_string(folder.join(name)).expect("the file can be read"));
    }
    Some(import.finish())
}

#[test]
fn virtual_services_of_the_istio_tutorial() {
    let names = ["istio-vs-recommendation-retry.yml", "istio-vs-no-retries.yml"];
    let Some(config) = read(&names) else { return };
    let default = "connect-failure,refused-stream,unavailable,cancelled";
    check(
        &config,
        &[
            &format!("anyone -> recommendation any[]: 4 on {default}; 2s a try"),
            &format!("anyone -> customer any[]: 1 on {default}"),
            &format!("anyone -> preference any[]: 1 on {default}"),
            &format!("anyone -> recommendation any[]: 1 on {default}"),
        ],
        &[],
    );
    let untouched = config.istio_default.expect("there is something of Istio");
    assert_eq!(untouched.attempts, Attempts::AtMost(3));
}

#[test]
fn routes_of_envoy_gateway_as_envoy_gets_them() {
    let Some(config) = read(&["envoy-gateway-xds-retry.routes.yaml"]) else { return };
    let basic = "connect-failure,refused-stream,unavailable,cancelled";
    check(
        &config,
        &[
            &format!("anyone -> first-route-dest first-route[]: 4 on {basic},500"),
            &format!("anyone -> first-route-dest second-route-defaults[]: 3 on {basic},503"),
            "anyone -> first-route-dest third-route-only-triggers[]: 6 on \
             no-answer,reset-before-request,connect-failure",
        ],
        &[],
    );
    let waits: Vec<_> = config.policies.iter().map(|it| it.backoff.map(|it| it.base)).collect();
    let base = std::time::Duration::from_millis(200);
    assert_eq!(waits, [Some(base), None, None]);
}

#[test]
fn routes_of_istio_as_go_prints_them() {
    let Some(config) = read(&["envoy-istio-none_rds.json"]) else { return };
    let policy = "anyone -> s1http.none /*[]: 3 on \
                  connect-failure,refused-stream,unavailable,cancelled,resource-exhausted,503";
    check(&config, &[policy, policy], &[]);
}

#[test]
fn routes_of_the_gateway_api_and_policies_attached_to_them() {
    let Some(config) = read(&["gatewayapi-httproute-retry.yaml"]) else { return };
    check(
        &config,
        // Both rules retry by themselves, so what is attached to the route does nothing.
        &[
            "gateways -> service-1.default /*[]: 4 on 500; 3s a try",
            "gateways -> service-1.default /v2*[]: 4 on ; 3s a try",
        ],
        &["gatewayapi-httproute-retry.yaml:79: BackendTrafficPolicy \
           envoy-gateway/policy-for-gateway spec.retry: a route of Gateway gateway-1.envoy-gateway \
           is in no file; what is attached to it is not in effect here"],
    );
    assert_eq!(config.passed_over["Gateway"], 2);
}

#[test]
fn service_profiles_of_emojivoto() {
    let names = ["linkerd-sp-emoji.yml", "linkerd-sp-web-retry-budget.yml"];
    let Some(config) = read(&names) else { return };
    let tail = "while the budget pays on 5xx,unavailable; 0.1 % in 10 s, at least 10/s";
    check(
        &config,
        &[
            &format!("anyone -> emoji-svc.emojivoto ListAll[]: {tail}"),
            &format!("anyone -> emoji-svc.emojivoto FindByShortcode[]: {tail}"),
            &format!("anyone -> web-svc.emojivoto GET /api/list[\"GET\"]: {tail}"),
            &format!("anyone -> web-svc.emojivoto GET /api/vote[\"GET\"]: {tail}"),
        ],
        &[],
    );
    let method = &config.policies[0].route.grpc_methods;
    assert_eq!(*method, ["emojivoto.v1.EmojiService/ListAll"]);
    assert_eq!(config.budgets.len(), 2);
    // Both only read, by a method of HTTP and by the name of one of gRPC.
    let writes: Vec<_> = config.policies.iter().map(|it| it.repeated_writes()).collect();
    assert!(writes.iter().all(Vec::is_empty), "{writes:?}");
}

#[test]
fn a_proxy_of_contour() {
    let Some(config) = read(&["contour-httpproxy-retry.yaml"]) else { return };
    check(&config, &["gateways -> s1.default any[]: 4 on 5xx; 150ms a try; 1s in all"], &[]);
    assert_eq!(config.policies[0].repeated_writes(), ["POST", "PATCH"]);
}

#[test]
fn service_configs_of_googleapis() {
    let Some(config) = read(&["grpc-pubsub.json", "grpc-kms.json"]) else { return };
    assert_eq!(config.unread, []);
    let attempts = config.policies.iter().filter_map(|policy| policy.attempts.most());
    assert!(attempts.clone().all(|most| most == 5), "{:?}", attempts.collect::<Vec<_>>());
    let publish = config
        .policies
        .iter()
        .find(|policy| policy.route.grpc_methods == ["google.pubsub.v1.Publisher/Publish"])
        .expect("it is retried");
    assert_eq!(
        super::line(publish),
        "anyone -> google.pubsub.v1.Publisher Publish[]: 5 on aborted,cancelled,internal,\
         resource-exhausted,unknown,unavailable,deadline-exceeded; 60s in all"
    );
    assert_eq!(publish.repeated_writes(), ["google.pubsub.v1.Publisher/Publish"]);
    // A method whose configuration has a time limit only is in no policy.
    let create = "google.cloud.kms.v1.KeyManagementService/CreateCryptoKeyVersion";
    let mut methods = config.policies.iter().flat_map(|policy| &policy.route.grpc_methods);
    assert!(!methods.any(|method| method == create));
}
