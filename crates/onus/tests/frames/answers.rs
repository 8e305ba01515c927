//! gRPC over frames: which block has the status, and what travels with it.

use std::time::Duration;

use http::{HeaderMap, Request, header};
use http_body_util::BodyExt;

use super::relay::{Speaks::Http2, checkout, plain, relay, twice};
use super::streams::{Stream, streams};
use crate::cast::{Pieces, counted, pass, paused_sockets, said};

type Lines = &'static [(&'static str, &'static str)];

const GRPC: Lines = &[("content-type", "application/grpc")];
const UNAVAILABLE: Lines = &[("grpc-status", "14"), ("onus-claim", "claimed;reason=own")];
const FINE: Lines = &[("grpc-status", "0")];

/// What the caller of a service gets that passes on what the stub answers.
struct Got {
    /// How many attempts the stub saw.
    attempts: usize,
    /// The one block of an answer that ends with its head.
    only: Option<HeaderMap>,
    data: String,
    /// The block that has the status, if any.
    trailers: Option<HeaderMap>,
    broken: bool,
    /// Calls that ended ok, and with an error; requests that did.
    ended: [[u64; 2]; 2],
}

impl Got {
    fn status(&self) -> &str {
        let block = self.only.as_ref().or(self.trailers.as_ref());
        let status = block.and_then(|block| block.get("grpc-status"));
        status.map_or("none", |status| status.to_str().unwrap())
    }

    fn claim(&self) -> String {
        self.trailers.as_ref().or(self.only.as_ref()).map_or_else(|| "nothing".to_owned(), said)
    }
}

/// Calls a service that passes the call on to a stub, which follows `script` at first and is fine
/// then.
fn call<F>(script: impl Fn(Stream) -> F + Clone + Send + 'static) -> Got
where
    F: Future<Output = ()> + Send + 'static,
{
    paused_sockets(async {
        let stub = streams(move |mut stream| {
            let script = script.clone();
            async move {
                if stream.number == 0 {
                    return script(stream).await;
                }
                stream.request().await;
                stream.head(200, GRPC);
                stream.data("fine");
                stream.trailers(FINE);
            }
        })
        .await;
        let onus = checkout(twice());
        let service = relay(&onus, Http2, Http2, stub.address).await;
        let request = Request::post(format!("http://{service}/pkg.Service/Method"))
            .header(header::CONTENT_TYPE, "application/grpc")
            .header(header::TE, "trailers")
            .body(Pieces::sized("ask"))
            .unwrap();
        let response = plain(Http2).request(request).await.unwrap();
        let ends = http_body::Body::is_end_stream(response.body());
        let (head, mut body) = response.into_parts();
        let (mut data, mut trailers, mut broken) = (String::new(), None, false);
        while let Some(frame) = body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(bytes)) => data += std::str::from_utf8(&bytes).unwrap(),
                Ok(Err(frame)) => trailers = frame.into_trailers().ok(),
                Err(_) => broken = true,
            }
        }
        let ended = ["onus_calls_total", "onus_requests_total"].map(|family| {
            ["ok", "error"].map(|outcome| counted(&onus, family, &[("outcome", outcome)]))
        });
        let only = ends.then_some(head.headers);
        Got { attempts: stub.seen().len(), only, data, trailers, broken, ended }
    })
}

#[test]
fn a_status_in_a_frame_of_its_own_is_retried_by_the_direct_caller() {
    // [term-5] S01
    for late in [0, 5, 500] {
        let got = call(move |mut stream| async move {
            stream.request().await;
            stream.head(200, GRPC);
            pass(Duration::from_millis(late)).await;
            stream.trailers(UNAVAILABLE);
        });
        assert_eq!((got.attempts, got.status(), &*got.data), (2, "0", "fine"), "{late} ms");
        assert_eq!(got.ended, [[1, 0], [1, 0]]);
    }
    // Trailers-Only as gRPC has it.
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.ends(200, &[GRPC, UNAVAILABLE].concat());
    });
    assert_eq!((got.attempts, got.status(), &*got.data), (2, "0", "fine"));
}

#[test]
fn a_status_behind_a_message_is_counted_and_claimed_in_the_trailers() {
    // [term-5] [wire-8] S01 S23
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.head(200, GRPC);
        stream.data("part");
        stream.trailers(UNAVAILABLE);
    });
    assert_eq!((got.attempts, got.status(), &*got.data), (1, "14", "part"));
    assert_eq!(got.claim(), "claimed handoff");
    assert_eq!(got.ended, [[0, 1], [0, 1]]);
}

#[test]
fn a_status_in_the_head_decides_whatever_follows() {
    // S25
    // Clients of gRPC do not agree on a head that has a status and does not end the answer. What
    // the caller of a retried call gets is the last answer, and never a mixture.
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.head(200, &[GRPC, UNAVAILABLE].concat());
        stream.data("part");
        stream.trailers(FINE);
    });
    assert_eq!((got.attempts, got.status(), &*got.data), (2, "0", "fine"));
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.head(200, &[GRPC, FINE].concat());
        stream.data("part");
        stream.trailers(UNAVAILABLE);
    });
    assert_eq!((got.attempts, got.status(), &*got.data), (1, "14", "part"));
    assert_eq!(got.claim(), "nothing", "a claim of the callee's stays with this service");
}

#[test]
fn an_answer_that_ends_without_a_status_is_no_success() {
    // S30
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.ends(200, GRPC);
    });
    assert_eq!((got.attempts, got.status()), (2, "0"), "nothing has reached the caller");
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.head(200, GRPC);
        stream.last("part");
    });
    assert_eq!((got.attempts, got.status(), &*got.data), (1, "none", "part"));
    assert_eq!((got.broken, got.ended), (false, [[0, 1], [0, 1]]));
}

#[test]
fn all_that_comes_with_a_status_arrives_in_its_block() {
    // S27
    const DETAILS: Lines = &[
        ("grpc-status", "9"),
        ("grpc-message", "not%20now"),
        ("grpc-status-details-bin", "CAkSBw"),
        ("one-bin", "AAE"),
        ("one-bin", "AAI"),
        ("two-bin", "AAM"),
    ];
    let all = |block: &HeaderMap| {
        for &(name, value) in DETAILS {
            assert!(block.get_all(name).iter().any(|has| has == value), "{name} {block:?}");
        }
        assert_eq!(block.get_all("one-bin").iter().count(), 2);
    };
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.ends(200, &[GRPC, DETAILS].concat());
    });
    let only = got.only.as_ref().unwrap();
    all(only);
    assert_eq!(only["content-type"], "application/grpc");
    let got = call(|mut stream| async move {
        stream.request().await;
        stream.head(200, GRPC);
        stream.trailers(DETAILS);
    });
    assert!(got.only.is_none());
    all(got.trailers.as_ref().unwrap());
}
