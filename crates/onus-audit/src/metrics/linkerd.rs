//! Linkerd's series: calls and attempts by the proxies of callers.

use onus_promql::Sample;
use onus_retry_config::Service;

use super::{About, Metrics, Question};

pub(super) fn questions(window: &str) -> Vec<Question> {
    let ask = |about, by: &str, selector: &str| {
        let promql = format!("sum by ({by}) (increase({selector}[{window}]))");
        Question { about, promql }
    };
    let profile = "namespace, deployment, dst, classification";
    let routes = "namespace, deployment, parent_name, parent_namespace";
    let of_routes = |protocol: &str, name: &str| {
        format!("outbound_{protocol}_route_{name}_total{{parent_kind=\"Service\"}}")
    };
    let mut questions = vec![
        ask(
            About::LinkerdResponses,
            "namespace, deployment, dst_namespace, dst_service, dst_deployment, classification",
            "response_total{direction=\"outbound\"}",
        ),
        ask(About::LinkerdRouteCalls, profile, "route_response_total{direction=\"outbound\"}"),
        ask(
            About::LinkerdRouteAttempts,
            profile,
            "route_actual_response_total{direction=\"outbound\"}",
        ),
    ];
    // Not in one selector: without their names, series of both may have the same labels.
    for (protocol, status) in [("http", "http_status"), ("grpc", "grpc_status")] {
        questions.push(ask(
            About::LinkerdCalls,
            &format!("{routes}, {status}"),
            &of_routes(protocol, "request_statuses"),
        ));
        let retries = of_routes(protocol, "retry_requests");
        questions.push(ask(About::LinkerdRetries, routes, &retries));
    }
    questions
}

pub(super) fn take(metrics: &mut Metrics, about: About, sample: &Sample) {
    let deployment = sample.label("deployment");
    let callee = callee(sample);
    let (false, Some(callee)) = (deployment.is_empty(), callee) else {
        let told = "Linkerd's series: some calls have no deployment or no service to call";
        if !metrics.untold.iter().any(|it| it == told) {
            metrics.untold.push(told.to_owned());
        }
        return;
    };
    let namespace = Some(sample.label("namespace")).filter(|it| !it.is_empty());
    let edge = metrics.edge(Service::new(deployment, namespace), callee);
    let failed = sample.label("classification") == "failure"
        || sample.label("http_status").starts_with('5')
        || sample.label("http_status") == "429"
        || ["UNKNOWN", "DEADLINE_EXCEEDED", "RESOURCE_EXHAUSTED", "ABORTED", "INTERNAL"]
            .contains(&sample.label("grpc_status"))
        || ["UNAVAILABLE", "DATA_LOSS"].contains(&sample.label("grpc_status"));
    match about {
        // These know of no retries, and stand in where nothing better is.
        About::LinkerdResponses => {
            edge.rough_calls += sample.value;
            edge.rough_failures += if failed { sample.value } else { 0.0 };
        }
        About::LinkerdRouteCalls | About::LinkerdCalls => {
            edge.calls += sample.value;
            edge.failures += if failed { sample.value } else { 0.0 };
        }
        About::LinkerdRouteAttempts => *edge.attempts.get_or_insert(0.0) += sample.value,
        About::LinkerdRetries => *edge.retries.get_or_insert(0.0) += sample.value,
        About::IstioRequests
        | About::IstioFailures
        | About::OnusCalls
        | About::OnusRetries
        | About::OnusClasses
        | About::OnusModes => {}
    }
}

/// Named by the service that was called, or by the deployment that answered.
fn callee(sample: &Sample) -> Option<Service> {
    let known = |label| Some(sample.label(label)).filter(|it| !it.is_empty());
    if let Some(dst) = known("dst") {
        return Some(Service::of_host(dst, None));
    }
    if let Some(parent) = known("parent_name") {
        return Some(Service::new(parent, known("parent_namespace")));
    }
    let name = known("dst_service").or_else(|| known("dst_deployment"))?;
    Some(Service::new(name, known("dst_namespace")))
}
