//! Whatever breaks inside Onus, the request passes as it came.

use std::borrow::Cow;

use http::{Request, Response};
use onus::{AttemptError, Onus, OnusBuilder, Procedure, RetryPolicy};
use onus_agent::fault_injection::set_broken;
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Pieces, Reply, ask, counted, get, paused, relay, said, serve};

fn two(builder: OnusBuilder) -> OnusBuilder {
    builder.enforce().retry("payments", RetryPolicy::attempts(2).no_budget())
}

#[test]
fn a_panic_inside_a_decision_passes_the_request_unchanged() {
    // [fault-1]
    let check = |reply: Reply, expected: u16| {
        let (response, attempts, faults) = paused(async {
            let onus = two(Onus::builder("checkout")).build().unwrap();
            let callee = Callee::new([reply.header("x-own", "1")]);
            let client = onus.outbound("payments").layer(callee.clone());
            let mut node = serve(&onus, move |request| relay(client.clone(), request));
            set_broken(true);
            let response = ask(&mut node, get("/")).await;
            set_broken(false);
            (response, callee.seen().len(), counted(&onus, "onus_faults_total", &[]))
        });
        assert_eq!(response.status(), expected);
        assert_eq!(response.headers()["x-own"], "1");
        assert_eq!(said(response.headers()), "nothing");
        assert_eq!(attempts, 1, "a fault adds no retry");
        assert!(faults > 0, "a fault is counted");
    };
    check(Reply::says("claimed"), 503);
    check(Reply::says("unclaimed"), 503);
    check(Reply::status(500), 500);
    check(Reply::ok(), 200);
}

#[test]
fn a_panic_inside_a_decision_ends_with_it() {
    // [fault-1]
    let claims = paused(async {
        let onus = two(Onus::builder("checkout")).build().unwrap();
        let client = onus.outbound("payments").layer(Callee::new([Reply::says("claimed")]));
        let mut node = serve(&onus, move |request| relay(client.clone(), request));
        let mut claims = Vec::new();
        for broken in [false, true, false] {
            set_broken(broken);
            claims.push(said(ask(&mut node, get("/")).await.headers()));
        }
        claims
    });
    assert_eq!(claims, ["unclaimed exhausted", "nothing", "unclaimed exhausted"]);
}

#[test]
fn functions_of_the_user_that_panic_cost_no_request() {
    // [fault-1]
    let (status, claim, calls) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let layer = onus
            .outbound_by(|_| -> Cow<'static, str> { panic!("the callee") })
            .procedure(|_| -> Option<Procedure> { panic!("the callee's procedure") })
            .classify_errors(|_: &crate::cast::Broken| -> AttemptError { panic!("the error") });
        let client = layer.layer(Callee::new([Reply::breaks()]));
        let handler = tower::service_fn(move |request: Request<Pieces>| {
            let client = client.clone();
            async move {
                let answer = client.oneshot(request).await;
                let status = if answer.is_ok() { 200 } else { 502 };
                let response = Response::builder().status(status).body(Pieces::empty()).unwrap();
                Ok::<_, crate::cast::Broken>(response)
            }
        });
        let inbound = onus.inbound().procedure(|_| panic!("the procedure"));
        let response = inbound.layer(handler).oneshot(get("/")).await.unwrap();
        let labels = [("caller_method", "GET"), ("callee", "__other__"), ("callee_method", "GET")];
        let calls = counted(&onus, "onus_calls_total", &labels);
        (response.status(), said(response.headers()), calls)
    });
    assert_eq!((status.as_u16(), &*claim, calls), (502, "claimed silent handoff", 1));
}

#[test]
fn a_handler_that_panics_leaves_the_scope() {
    let (answered, ended) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let mut node = serve(&onus, |_: Request<Pieces>| async { panic!("the handler") });
        let answered = tokio::spawn(async move { ask(&mut node, get("/")).await.status() }).await;
        assert!(!onus::InboundScope::current().is_some());
        (answered, counted(&onus, "onus_requests_total", &[("outcome", "cancelled")]))
    });
    assert!(answered.unwrap_err().is_panic(), "the panic is the application's to handle");
    assert_eq!(ended, 1);
}

#[test]
fn full_tables_cost_no_request() {
    // [fault-2]
    let (statuses, overflows) = paused(async {
        let limits = onus::Limits { edges: 16, procedures: 16, names: 16, ..Default::default() };
        let onus = two(Onus::builder("checkout")).limits(limits).build().unwrap();
        let layer = onus.outbound_by(|head| head.uri.path().to_owned().into());
        let client = layer.layer(Callee::new([Reply::says("claimed")]));
        let mut statuses = Vec::new();
        for n in 0..100 {
            let client = client.clone();
            let mut node = serve(&onus, move |request| relay(client.clone(), request));
            let mut request = get(&format!("/{n}"));
            request.extensions_mut().insert(Procedure::route(format!("/{n}/{{id}}")));
            let response = ask(&mut node, request).await;
            statuses.push((response.status().as_u16(), said(response.headers())));
        }
        (statuses, counted(&onus, "onus_overflows_total", &[]))
    });
    assert!(statuses.iter().all(|answer| *answer == (503, "claimed handoff".to_owned())));
    assert!(overflows > 0);
}
