//! Each request and each call ends once, however its answer ends.

use http::{Method, Request, Response, header};
use http_body_util::BodyExt;
use onus::Onus;
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, ask, counted, paused, serve};

/// A server takes the head of an answer and drops its body. How the request is counted: ok, error
/// or cancelled.
#[track_caller]
fn check(method: Method, status: u16, body: fn() -> Pieces, expected: &str) {
    let counts = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let mut node = serve(&onus, move |_: Request<Pieces>| async move {
            Response::builder().status(status).body(body()).unwrap()
        });
        let request = Request::builder().method(method).body(Pieces::empty()).unwrap();
        drop(ask(&mut node, request).await);
        ["ok", "error", "cancelled"].map(|outcome| {
            (outcome, counted(&onus, "onus_requests_total", &[("outcome", outcome)]))
        })
    });
    let ended: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    assert_eq!(ended, [(expected, 1)], "{status}");
}

#[test]
fn an_answer_without_a_body_ends_with_its_head() {
    let some = || Pieces::sized("a body");
    check(Method::GET, 200, some, "cancelled");
    check(Method::GET, 200, Pieces::empty, "ok");
    check(Method::HEAD, 200, some, "ok");
    check(Method::HEAD, 503, some, "error");
    // These have no body by HTTP, so that no server asks for one.
    for status in [101, 204, 304] {
        check(Method::GET, status, some, "ok");
    }
    // Nothing to come, though the body does not know that this is its end.
    check(Method::GET, 200, || Pieces::of_size([Piece::data("")]), "ok");
    check(Method::GET, 503, || Pieces::of_size([Piece::data("")]), "error");
}

#[test]
fn an_answer_that_breaks_after_its_trailers_has_failed_once() {
    let check = |status: &'static str, expected: [u64; 3]| {
        let counts = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let reply = Reply::ok().header("content-type", "application/grpc");
            let ends = [Piece::Trailers(vec![("grpc-status", status)]), Piece::Break];
            let client = onus.outbound("payments").layer(Callee::new([reply.body(ends)]));
            let request = Request::post("/pkg.Service/Method");
            let request = request.header(header::CONTENT_TYPE, "application/grpc");
            let response = client.oneshot(request.body(Pieces::empty()).unwrap()).await.unwrap();
            assert!(response.into_body().collect().await.is_err());
            ["ok", "error", "abandoned"]
                .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]))
        });
        assert_eq!(counts, expected);
    };
    check("14", [0, 1, 0]);
    check("0", [0, 1, 0]);
}
