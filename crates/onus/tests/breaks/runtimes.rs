//! Runtimes without what the layers would like to have.

use http::{Request, Response};
use onus::{InboundScope, Onus};

use crate::cast::{Pieces, ask, get, serve};

/// Runs `future` where there is no timer.
fn without_timer<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn a_time_limit_of_the_caller_costs_no_request_where_there_is_no_timer() {
    // [fault-1]
    for (name, value) in [("x-envoy-expected-rq-timeout-ms", "1000"), ("grpc-timeout", "1S")] {
        let status = without_timer(async {
            let onus = Onus::builder("checkout").enforce().build().unwrap();
            let mut node =
                serve(&onus, |_: Request<Pieces>| async move { Response::new(Pieces::empty()) });
            let mut request = get("/");
            request.headers_mut().insert(name, http::HeaderValue::from_static(value));
            ask(&mut node, request).await.status()
        });
        assert_eq!(status, 200);
    }
}

#[test]
fn the_scope_follows_the_task_through_blocking_sections_and_local_tasks() {
    // [correlate-1]
    let scoped = || InboundScope::current().is_some();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).build().unwrap();
    let seen = runtime.block_on(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let node = serve(&onus, move |_: Request<Pieces>| async move {
            let mut seen = vec![tokio::task::block_in_place(|| {
                // Other tasks of this worker go on elsewhere, and not in this scope.
                let other = tokio::spawn(async move { scoped() });
                let blocked = tokio::runtime::Handle::current().block_on(async move { scoped() });
                let other = tokio::runtime::Handle::current().block_on(other).unwrap();
                (blocked, other)
            })];
            tokio::task::yield_now().await;
            seen.push((scoped(), tokio::spawn(async move { scoped() }).await.unwrap()));
            Response::builder().header("seen", format!("{seen:?}")).body(Pieces::empty()).unwrap()
        });
        let asked = tokio::spawn(async move {
            let mut node = node;
            let response = ask(&mut node, get("/")).await;
            assert!(!scoped(), "the scope is left again");
            response.headers()["seen"].to_str().unwrap().to_owned()
        });
        asked.await.unwrap()
    });
    assert_eq!(seen, "[(true, false), (true, false)]");
    let local = tokio::task::LocalSet::new();
    let seen =
        local.block_on(&tokio::runtime::Builder::new_current_thread().build().unwrap(), async {
            let onus = Onus::builder("checkout").build().unwrap();
            let mut node = serve(&onus, move |_: Request<Pieces>| async move {
                tokio::task::yield_now().await;
                let seen = (scoped(), tokio::spawn(async move { scoped() }).await.unwrap());
                Response::builder()
                    .header("seen", format!("{seen:?}"))
                    .body(Pieces::empty())
                    .unwrap()
            });
            let others = tokio::task::spawn_local(async move {
                for _ in 0..5 {
                    assert!(!scoped());
                    tokio::task::yield_now().await;
                }
            });
            let seen =
                ask(&mut node, get("/")).await.headers()["seen"].to_str().unwrap().to_owned();
            others.await.unwrap();
            seen
        });
    assert_eq!(seen, "(true, false)");
}
