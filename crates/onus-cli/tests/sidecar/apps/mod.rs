//! Applications in Python and Node that know nothing of their sidecars.

mod app;

use std::net::SocketAddr;

use http::HeaderMap;

use self::app::{App, Language};
use super::cast::{Line, Page, Sidecar, answers};

/// An application with its sidecar.
struct Service {
    app: App,
    sidecar: Sidecar,
}

impl Service {
    /// `callee` is the name and the address of the one that it calls, and more of its configuration.
    async fn start(
        name: &str,
        language: Language,
        environment: &[(&str, &str)],
        callee: Option<(&str, SocketAddr, &str)>,
    ) -> Self {
        Self::in_mode("enforce", name, language, environment, callee).await
    }

    async fn in_mode(
        mode: &str,
        name: &str,
        language: Language,
        environment: &[(&str, &str)],
        callee: Option<(&str, SocketAddr, &str)>,
    ) -> Self {
        let mut environment = environment.to_vec();
        let mut callees = String::new();
        if let Some((name, address, more)) = callee {
            environment.push(("CALLEE", name));
            callees = format!("callees: {{{name}: {{address: \"{address}\"{more}}}}}\n");
        }
        let mut app = App::start(language, &environment).await;
        let sidecar = Sidecar::start(&format!(
            "service: {name}\nmode: {mode}\n\
             inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n{callees}",
            app.address
        ))
        .await;
        app.calls_through(sidecar.outbound).await;
        Self { app, sidecar }
    }

    /// Asks it; the status and the headers of its answer.
    async fn ask(&self, headers: &str) -> (u16, HeaderMap) {
        let mut line = Line::to(self.sidecar.inbound).await;
        line.say(format!("GET / HTTP/1.1\r\nhost: a\r\n{headers}\r\n")).await;
        let head = line.head().await.expect("it answers");
        (head.status(), head.headers)
    }
}

fn claim(headers: &HeaderMap) -> &str {
    headers.get("onus-claim").map_or("-", |claim| claim.to_str().expect("a claim is text"))
}

fn trace(number: u32) -> String {
    format!("traceparent: 00-{:032x}-{:016x}-01\r\n", number + 1, number + 1)
}

/// Calls that were tied to no request, and those of them that could be of several.
fn lost(page: &Page) -> (u64, u64) {
    (page.sum("onus_untied_calls_total", &[]), page.sum("onus_ambiguous_calls_total", &[]))
}

#[tokio::test]
async fn one_retry_is_made_in_a_chain_of_python_and_node_over_http_and_grpc() {
    if !Language::all_are_there("a_chain_of_python_and_node").await {
        return;
    }
    // A calls B over gRPC, B calls C over HTTP, both with OpenTelemetry; C calls D over gRPC and
    // copies the headers of tracing; D fails.
    let otel = |serve, call| vec![("OTEL", "1"), ("SERVE", serve), ("CALL", call)];
    let copies = vec![("SERVE", "http"), ("CALL", "grpc"), ("HAND_ON", "traceparent tracestate")];
    let twice = format!(", {TWICE}");
    let d = Service::start("D", Language::Node, &[("SERVE", "grpc")], None).await;
    let callee = Some(("D", d.sidecar.inbound, &*twice));
    let c = Service::start("C", Language::Node, &copies, callee).await;
    let callee = Some(("C", c.sidecar.inbound, &*twice));
    let b = Service::start("B", Language::Python, &otel("grpc", "http"), callee).await;
    let callee = Some(("B", b.sidecar.inbound, &*twice));
    let a = Service::start("A", Language::Python, &otel("http", "grpc"), callee).await;
    for root in 0..ROOTS {
        let (status, headers) = a.ask(&trace(root)).await;
        assert_eq!(status, 503);
        let says = "unclaimed;reason=suppressed;attempt=1;origin=\"D\";hops=3";
        assert_eq!(claim(&headers), says);
    }
    let mut handled = Vec::new();
    for service in [a, b, c, d] {
        let page = service.sidecar.metrics().await;
        assert_eq!(page.sum("onus_ambiguous_calls_total", &[]), 0);
        if handled.len() < 3 {
            assert_eq!(page.sum("onus_untied_calls_total", &[]), 0, "tied by their tokens");
            assert_eq!(page.sum("onus_repeats_total", &[]), 0);
        }
        handled.push(service.app.end().await);
    }
    let roots = ROOTS as usize;
    assert_eq!(handled, [roots, roots, roots, 2 * roots]);
}

#[tokio::test]
async fn a_bare_application_ties_its_calls_by_an_id_while_that_is_certain() {
    if !Language::all_are_there("a_bare_application_ties_its_calls").await {
        return;
    }
    for (language, name, header) in [
        (Language::Python, "x-request-id", "x-request-id: n\r\n".to_owned()),
        (Language::Node, "traceparent", trace(77)),
    ] {
        let environment = [("SERVE", "http"), ("CALL", "http"), ("HAND_ON", name)];
        let callee = answers("503 X").await;
        let twice = format!(", {TWICE}");
        let peer = Some(("peer", callee.address, &*twice));
        let service = Service::start("bare", language, &environment, peer).await;
        for _ in 0..ROOTS {
            let (_, headers) = service.ask(&header).await;
            let says = "unclaimed;reason=exhausted;attempt=1;origin=\"peer\";hops=1";
            assert_eq!(claim(&headers), says, "{language:?}");
        }
        assert_eq!(lost(&service.sidecar.metrics().await), (0, 0), "{language:?}");
        drop(service);

        // Of two at the same time with the same id, each call could belong to either.
        let together = [&environment[..], &[("TOGETHER", "2")]].concat();
        let service = Service::start("bare", language, &together, peer).await;
        let (one, two) = tokio::join!(service.ask(&header), service.ask(&header));
        for (status, headers) in [one, two] {
            let says = "claimed;reason=context-lost;attempt=1;origin=\"bare\";hops=0";
            assert_eq!((status, claim(&headers)), (503, says), "{language:?}");
        }
        assert_eq!(lost(&service.sidecar.metrics().await), (2, 2), "{language:?}");
    }
}

#[tokio::test]
async fn an_application_that_hands_nothing_on_loses_the_context_and_that_is_counted() {
    if !Language::all_are_there("an_application_that_hands_nothing_on").await {
        return;
    }
    for language in [Language::Python, Language::Node] {
        let callee = answers("503 X").await;
        let twice = format!(", {TWICE}");
        let peer = Some(("peer", callee.address, &*twice));
        let environment = [("SERVE", "http"), ("CALL", "http")];
        let service = Service::start("bare", language, &environment, peer).await;
        for root in 0..ROOTS {
            let (_, headers) = service.ask(&trace(root)).await;
            let says = "claimed;reason=context-lost;attempt=1;origin=\"bare\";hops=0";
            assert_eq!(claim(&headers), says, "{language:?}");
        }
        // Its sidecar goes on to retry.
        assert_eq!(callee.seen().len(), 2 * ROOTS as usize, "{language:?}");
        assert_eq!(lost(&service.sidecar.metrics().await), (u64::from(ROOTS), 0), "{language:?}");
    }
}

#[tokio::test]
async fn retries_of_an_application_are_attempts_of_one_call() {
    if !Language::all_are_there("retries_of_an_application").await {
        return;
    }
    // S76. Three tries each: by a loop around `requests`, by one around `http`.
    let loops = [
        (Language::Python, vec![("OTEL", "1"), ("CALL", "http")]),
        (Language::Node, vec![("CALL", "http"), ("HAND_ON", "traceparent tracestate")]),
    ];
    for (language, mut environment) in loops {
        environment.extend([("SERVE", "http"), ("TRIES", "3")]);
        let callee = answers("503 X").await;
        let peer = Some(("peer", callee.address, ""));
        let service = Service::start("loops", language, &environment, peer).await;
        for root in 0..ROOTS {
            let (_, headers) = service.ask(&trace(root)).await;
            assert_eq!(callee.seen().len(), 3 * (root as usize + 1), "{environment:?}");
            // Three attempts were made, so nobody above makes more.
            let says = "unclaimed;reason=not-configured;attempt=1;origin=\"peer\";hops=1";
            assert_eq!(claim(&headers), says, "{environment:?}");
        }
        let page = service.sidecar.metrics().await;
        assert_eq!(page.sum("onus_repeats_total", &[]), 2 * u64::from(ROOTS), "{environment:?}");
        assert_eq!(page.sum("onus_calls_total", &[]), 3 * u64::from(ROOTS), "{environment:?}");
        assert_eq!(lost(&page), (0, 0), "{environment:?}");
    }
}

#[tokio::test]
async fn retries_of_a_grpc_library_are_attempts_of_one_call() {
    if !Language::all_are_there("retries_of_a_grpc_library").await {
        return;
    }
    // S76. A's sidecar tries B twice. B's library tries C three times, and where there is a policy B's
    // sidecar tries it twice. C fails, and has no sidecar. Requests at B and at C for each root, and
    // the repeats that B's sidecar knows of.
    for (mode, policy, at_b, at_c, repeats) in [
        ("off", "", 2, 6, 0),
        ("enforce", "", 1, 3, 2),
        ("off", TWICE, 2, 12, 0),
        ("enforce", TWICE, 1, 4, 2),
    ] {
        for language in [Language::Python, Language::Node] {
            let what = format!("{mode} {policy} {language:?}");
            let mut c = App::start(Language::Node, &[("SERVE", "grpc")]).await;
            let nobody = answers("503 X").await;
            c.calls_through(nobody.address).await;
            let tracing = match language {
                Language::Python => ("OTEL", "1"),
                Language::Node => ("HAND_ON", "traceparent tracestate"),
            };
            let environment = [("SERVE", "http"), ("CALL", "grpc"), ("TRIES", "3"), tracing];
            let own = format!(", {policy}");
            let callee = Some(("C", c.address, if policy.is_empty() { "" } else { &*own }));
            let b = Service::in_mode(mode, "B", language, &environment, callee).await;
            let a = Sidecar::start(&format!(
                "service: A\nmode: {mode}\n\
                 inbound: {{listen: \"127.0.0.1:0\", app: \"{}\"}}\n\
                 callees: {{B: {{address: \"{}\", {TWICE}}}}}\n",
                nobody.address, b.sidecar.inbound
            ))
            .await;
            let mut line = Line::to(a.outbound).await;
            for root in 0..ROOTS {
                line.say(format!("GET / HTTP/1.1\r\nhost: B\r\n{}\r\n", trace(root))).await;
                let head = line.head().await.expect("it is answered");
                assert_eq!(head.status(), 503, "{what}");
                line.body(&head).await.expect("it is whole");
            }
            let page = b.sidecar.metrics().await;
            let repeated = page.sum("onus_repeats_total", &[]);
            assert_eq!(repeated, repeats * u64::from(ROOTS), "{what}");
            assert!(mode == "off" || lost(&page) == (0, 0), "{what}");
            let handled = (b.app.end().await, c.end().await);
            let roots = ROOTS as usize;
            assert_eq!(handled, (at_b * roots, at_c * roots), "{what}");
        }
    }
}

const ROOTS: u32 = 10;

/// Two attempts, the second nearly at once, of gRPC too.
const TWICE: &str = "retry: {attempts: 2, no-budget: true, no-gate: true, no-probes: true, \
                     unsafe-methods: true, backoff-base: 1ms, backoff-max: 2ms}";
