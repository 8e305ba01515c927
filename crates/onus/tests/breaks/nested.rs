//! The inbound layer twice around one handler, as around a router and a router in it.

use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use onus::{Onus, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, counted, get, paused, post, relay, serve};

/// A handler that calls `payments`, under the layer twice. `answer`: the claim, and what the calls
/// carried.
#[track_caller]
fn check(reply: Reply, headers: &[(&'static str, &'static str)], answer: (&str, &[&str])) {
    let (line, seen, clean) = paused(async {
        let policy = RetryPolicy::attempts(2).no_budget().no_probes();
        let builder = Onus::builder("checkout").enforce().retry("payments", policy);
        let onus = builder.build().unwrap();
        let callee = Callee::new([reply]);
        let client = onus.outbound("payments").layer(callee.clone());
        let node = serve(&onus, move |request: Request<Pieces>| {
            let grpc = request.headers().contains_key(header::CONTENT_TYPE);
            let answer = relay(client.clone(), get("/"));
            async move {
                let mut answer = answer.await;
                if grpc && answer.status() != 200 {
                    let lines = vec![("grpc-status", "14")];
                    answer = Response::new(Pieces::new([Piece::Trailers(lines)]));
                    let value = HeaderValue::from_static("application/grpc");
                    answer.headers_mut().insert(header::CONTENT_TYPE, value);
                }
                answer
            }
        });
        let mut request = post("/pay", Pieces::empty());
        for &(name, value) in headers {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let response = onus.inbound().layer(node).oneshot(request).await.unwrap();
        let (mut head, body) = response.into_parts();
        head.headers.extend(body.collect().await.unwrap().trailers().cloned().unwrap_or_default());
        let line = head.headers.get("onus-claim").map(|line| line.to_str().unwrap().to_owned());
        let clean = counted(&onus, "onus_clean_requests_total", &[("outcome", "error")]);
        (line.unwrap_or_default(), callee.attempts(), clean)
    });
    assert_eq!((&*line, &*seen.iter().map(|seen| &**seen).collect::<Vec<_>>()), answer);
    assert_eq!(clean, 0, "the outer layer knows nothing, and teaches nothing");
}

#[test]
fn the_layer_twice_says_what_it_says_once() {
    // [claim-8] [mark-1]
    let exhausted = "unclaimed;reason=exhausted;attempt=1;origin=\"payments\";hops=1";
    check(Reply::says("claimed"), &[], (exhausted, &["-", "2"]));
    let grpc = ("content-type", "application/grpc");
    check(Reply::says("claimed"), &[grpc], (exhausted, &["-", "2"]));
    let marked = "unclaimed;reason=marked;attempt=1;origin=\"payments\";hops=1";
    check(Reply::breaks(), &[("onus-mark", "1")], (marked, &["- marked"]));
    check(Reply::ok(), &[], ("", &["-"]));
}
