//! Runtimes without what the layers would like to have.

use http::{Request, Response};
use onus::Onus;

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
