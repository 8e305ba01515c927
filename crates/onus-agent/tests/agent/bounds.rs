//! Full tables: nothing is lost but the difference between what no longer fits.

use std::time::Duration;

use http::Method;
use onus_agent::{AgentConfig, EdgeClass, Limits, Procedure, RetryPolicy};

use crate::exposition::Exposition;
use crate::host::{Reply, Service, Target, retries};

/// The least that may be configured.
const LEAST: usize = 16;

fn service(limits: Limits, configure: impl FnOnce(&mut AgentConfig)) -> Service {
    Service::enforcing(|config| {
        config.limits = limits;
        configure(config);
    })
}

fn overflows(page: &Exposition, table: &str) -> f64 {
    page.sum("onus_overflows_total", &[("table", table)])
}

/// A service whose table of edges is full, of which none goes to `b`, `c` or `d`.
fn full_of_edges(configure: impl FnOnce(&mut AgentConfig)) -> Service {
    let service = service(Limits { edges: LEAST, ..Limits::default() }, configure);
    for n in 0..LEAST {
        service.edge(None, &format!("filler-{n}"), "/out");
    }
    service
}

#[test]
fn edges_without_room_share_one_per_callee_and_its_policy() {
    // [fault-2]
    let service = full_of_edges(|config| {
        config.retry("b", retries(3));
        config.untrusted("c");
    });
    let request = service.request();
    let edge = |callee: &str, route: &str| service.edge(Some(&request.inbound), callee, route);
    for (callee, attempts, trusted) in [("b", Some(3), true), ("c", None, false), ("d", None, true)]
    {
        let policy = *edge(callee, "/1").policy();
        assert_eq!(policy.retry.map(|retry| retry.attempts()), attempts, "{callee}");
        assert_eq!(policy.trusted, trusted, "{callee}");
        assert!(std::ptr::eq(&*edge(callee, "/1"), &*edge(callee, "/2")), "{callee}");
    }
    assert!(!std::ptr::eq(&*edge("b", "/1"), &*edge("c", "/1")));
    assert!(std::ptr::eq(&*edge("d", "/1"), &*edge("e", "/1")), "strangers share one");
    // The others are still told apart.
    assert!(!std::ptr::eq(&*service.edge(None, "filler-0", "/out"), &*edge("e", "/1")));

    let before = overflows(&service.metrics(), "edges");
    request.call("b").play(&[Reply::Error("claimed"), Reply::Ok]);
    request.call("d").play(&[Reply::Error("unclaimed;origin=\"z\";hops=0")]);
    let page = service.metrics();
    assert_eq!(overflows(&page, "edges"), before + 2.0);
    for (callee, outcome) in [("b", "ok"), ("__other__", "error")] {
        let labels = [
            ("caller_method", "__other__"),
            ("callee", callee),
            ("callee_method", "__other__"),
            ("outcome", outcome),
        ];
        assert_eq!(page.sum("onus_calls_total", &labels), 1.0, "{callee}");
    }
    let claim = request.claim();
    assert_eq!(claim, "unclaimed;reason=suppressed;attempt=1;origin=\"z\";hops=1");
}

#[test]
fn an_edge_without_room_keeps_the_rules_of_its_procedure() {
    // [decide-5] [decide-16] [fault-2]
    let service = full_of_edges(|config| {
        config.retry("b", retries(3).unsafe_methods());
        config.retry_procedure("b", "POST /charge", RetryPolicy::attempts(1));
        config.retry_procedure("b", "PUT", retries(2));
        config.retry_procedure("b", "/pkg.Pay/Charge", retries(4));
    });
    let symbols = service.agent.symbols();
    let callee = symbols.intern("b");
    let http = |method: Method, route| Procedure::http(symbols, &method, Some(route));
    for round in 0..2 {
        for (procedure, attempts) in [
            (http(Method::POST, "/charge"), None),
            (http(Method::POST, "/list"), Some(3)),
            (http(Method::PUT, "/list"), Some(2)),
            (http(Method::PUT, "/charge"), Some(2)),
            (Procedure::http(symbols, &Method::PUT, None), Some(2)),
            (Procedure::grpc(symbols, "/pkg.Pay/Charge"), Some(4)),
            (Procedure::grpc(symbols, "/pkg.Pay/List"), Some(3)),
        ] {
            let edge = service.agent.edge(None, callee, procedure, || service.now());
            let found = edge.policy().retry.map(|retry| retry.attempts());
            let name = procedure.display(symbols).to_string();
            assert_eq!(found, attempts, "{name}, round {round}");
        }
    }
}

#[test]
fn a_shared_edge_proves_nothing_about_its_parts() {
    // [claim-3] [class-5]
    for shared in [false, true] {
        let edges = if shared { LEAST } else { 100 };
        let service = service(Limits { edges, ..Limits::default() }, |_| {});
        for n in 0..LEAST {
            service.edge(None, &format!("filler-{n}"), "/out");
        }
        // What fails here is always survived.
        for _ in 0..100 {
            let request = service.request();
            request.call("d").play(&[Reply::Error("claimed")]);
            request.ok();
        }
        service.pass(Duration::from_secs(61));
        service.agent.tick(service.now());
        let class = service.edge(Some(&service.request().inbound), "d", "/out").class();
        let expected = if shared { EdgeClass::Unknown } else { EdgeClass::FailOpen };
        assert_eq!(class, expected, "shared: {shared}");
    }
}

#[test]
fn procedures_without_room_share_one() {
    // [fault-2]
    let limits = Limits { procedures: LEAST, ..Limits::default() };
    let service = service(limits, |config| config.retry("b", retries(2)));
    for n in 0..LEAST + 3 {
        let request = service.request_for(&format!("/in/{n}"), &[]);
        request.call("b").play(&[Reply::Error("claimed"), Reply::Error("claimed")]);
        let expected = "unclaimed;reason=exhausted;attempt=1;origin=\"b\";hops=1";
        assert_eq!(request.claim(), expected, "request {n}");
    }
    let page = service.metrics();
    assert_eq!(overflows(&page, "procedures"), 3.0);
    let of = |method| page.sum("onus_requests_total", &[("method", method), ("outcome", "error")]);
    assert_eq!((of("GET /in/0"), of("__other__")), (1.0, 3.0));
    let calls = page.sum("onus_calls_total", &[("caller_method", "__other__")]);
    assert_eq!(calls, 3.0);
}

#[test]
fn names_without_room_leave_policies_in_force() {
    // [fault-2]
    let limits = Limits { names: LEAST, ..Limits::default() };
    let service = service(limits, |config| config.retry("b", retries(2)));
    for n in 0..LEAST {
        let _ = service.agent.symbols().intern(&format!("/raw/path/{n}"));
    }
    let request = service.request();
    let second = request.call("b").play(&[Reply::Error("claimed"), Reply::Error("claimed")]);
    assert_eq!(second, crate::host::stopped(onus_agent::Stop::Exhausted));
    assert_eq!(
        request.claim(),
        "unclaimed;reason=exhausted;attempt=1;origin=\"b\";hops=1",
        "a configured callee has its name"
    );
    let page = service.metrics();
    assert!(overflows(&page, "names") > 0.0);
    assert_eq!(page.sum("onus_calls_total", &[("callee", "b")]), 1.0);
}

#[test]
fn requests_without_room_are_served_and_context_lost() {
    // [fault-2] [correlate-5]
    let limits = Limits { live_requests: LEAST, ..Limits::default() };
    let service = service(limits, |_| {});
    let none = || std::iter::empty::<&[u8]>();
    let live: Vec<_> = (0..LEAST).map(|_| service.request()).collect();
    for request in &live {
        assert!(service.agent.file(&request.inbound, none(), service.now()).is_some());
    }
    let over = service.request();
    assert_eq!(service.agent.file(&over.inbound, none(), service.now()), None);
    service.untied_call("b").play(&[Reply::Error("claimed")]);
    let claim = over.claim();
    assert_eq!(claim, "claimed;reason=context-lost;attempt=1;origin=\"a\";hops=0");
    let page = service.metrics();
    assert_eq!(overflows(&page, "requests"), 1.0);
    let entries =
        |page: &Exposition| page.sum("onus_correlation_entries", &[("table", "requests")]);
    assert_eq!(entries(&page), LEAST as f64);
    for request in live {
        request.ok();
    }
    assert_eq!(entries(&service.metrics()), 0.0, "each request that is over makes room");
}

#[test]
fn filing_a_request_twice_leaves_one_entry() {
    let service = service(Limits::default(), |_| {});
    let request = service.request();
    let ids = || [&b"trace"[..]].into_iter();
    let token = service.agent.file(&request.inbound, ids(), service.now());
    assert_eq!(service.agent.file(&request.inbound, ids(), service.now()), token);
    assert!(token.is_some());
    request.ok();
    let entries = service.metrics().sum("onus_correlation_entries", &[]);
    assert_eq!(entries, 0.0);
}

#[test]
fn calls_beyond_the_room_of_a_request_are_context_lost() {
    // [correlate-5] [claim-2] [fault-2]
    let service = service(Limits::default(), |_| {});
    let request = service.request();
    let target = Target { body: None, ..Target::GET };
    let open: Vec<_> = (0..1024).map(|_| request.call_to("b", &target)).collect();
    let page = service.metrics();
    assert_eq!((overflows(&page, "calls"), page.sum("onus_untied_calls_total", &[])), (0.0, 0.0));
    request.call_to("b", &target).play(&[Reply::Error("unclaimed")]);
    let page = service.metrics();
    assert_eq!((overflows(&page, "calls"), page.sum("onus_untied_calls_total", &[])), (1.0, 1.0));
    drop(open);
}

#[test]
fn calls_that_ended_ok_make_room() {
    // [correlate-5]
    let service = service(Limits::default(), |_| {});
    for closed in [true, false] {
        let request = service.request();
        let target = Target { body: None, ..Target::GET };
        for _ in 0..2000 {
            let mut call = request.call_to("b", &target);
            call.send();
            call.outbound.ok(closed, || service.now());
        }
        let untied = service.metrics().sum("onus_untied_calls_total", &[]);
        assert_eq!(untied, 0.0, "closed: {closed}");
    }
}

#[test]
fn failed_calls_beyond_those_remembered_are_no_repeats() {
    // [fault-2]
    let service = service(Limits::default(), |_| {});
    let request = service.request();
    let call = |callee: &str| request.call(callee).play(&[Reply::Error("claimed")]);
    for n in 0..257 {
        call(&format!("b{n}"));
    }
    let page = service.metrics();
    assert_eq!(overflows(&page, "failed-calls"), 1.0);
    call("b256");
    assert_eq!(service.metrics().sum("onus_repeats_total", &[]), 0.0);
    call("b255");
    assert_eq!(service.metrics().sum("onus_repeats_total", &[]), 1.0);
}
