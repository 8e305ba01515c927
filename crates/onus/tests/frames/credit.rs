//! Flow control of HTTP/2: what is held back for a retry, or read for nobody, costs no credit.

use http::Request;
use tower::ServiceExt;

use super::relay::{Speaks::Http1, Speaks::Http2, checkout, client, plain, relay, twice};
use super::streams::{streams, streams_with};
use crate::cast::{Piece, Pieces, read};

const KIB: usize = 1024;

fn narrow() -> h2::server::Builder {
    let mut settings = h2::server::Builder::new();
    settings.initial_window_size(4 * KIB as u32).initial_connection_window_size(64 * KIB as u32);
    settings
}

#[tokio::test]
async fn a_body_that_is_kept_gives_its_credit_back() {
    // The window is a sixteenth of the body, at the service and at its callee.
    let stub = streams_with(narrow(), |mut stream| async move {
        stream.request().await;
        stream.ends(if stream.number == 0 { 503 } else { 200 }, &[]);
    })
    .await;
    for speaks in [Http1, Http2] {
        let onus = checkout(twice());
        let service = relay(&onus, speaks, Http2, stub.address).await;
        let body = Pieces::chunked(64, KIB);
        let request = Request::put(format!("http://{service}/")).body(body).unwrap();
        assert_eq!(plain(speaks).request(request).await.unwrap().status(), 200);
    }
    assert!(stub.seen().iter().all(|seen| seen.body.len() == 64 * KIB));
    assert_eq!(stub.attempts(), ["-", "2 marked", "-"]);
}

#[tokio::test]
async fn failed_answers_that_nobody_reads_give_their_credit_back() {
    // S24
    // All the answers of a connection together are many times what its window allows, and some
    // are larger than what is read of a failed one.
    let stub = streams(|mut stream| async move {
        stream.request().await;
        let fails = stream.number % 2 == 0;
        let size = if stream.number % 8 == 0 { 100 } else { 20 };
        stream.head(if fails { 503 } else { 200 }, &[]);
        stream.last(vec![b'x'; size * KIB]);
        stream.gone().await;
    })
    .await;
    let client = client(&checkout(twice()), Http2);
    for _ in 0..400 {
        let request = Request::get(stub.url("/")).body(Pieces::new([] as [Piece; 0])).unwrap();
        let response = client.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(read(response.into_body()).await.unwrap().len(), 20 * KIB);
    }
    assert_eq!((stub.connections(), stub.attempts().len()), (1, 800));
}
