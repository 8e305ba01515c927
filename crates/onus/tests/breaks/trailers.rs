//! Trailers of answers that are not gRPC: nothing of the protocol belongs there.

use http::{HeaderMap, Request, Response};
use http_body_util::BodyExt;
use onus::{Mode, Onus};
use tower::{Layer, ServiceExt};

use crate::cast::{Broken, Callee, Piece, Pieces, Reply, ask, get, paused, serve};

const COPIED: [(&str, &str); 2] = [("onus-claim", "unclaimed"), ("checksum", "1")];

fn body() -> Pieces {
    Pieces::new([Piece::data("part"), Piece::Trailers(COPIED.to_vec())])
}

async fn names<B>(body: B) -> Vec<String>
where
    B: http_body::Body<Data = bytes::Bytes, Error = Broken>,
{
    let all = body.collect().await.unwrap();
    let trailers = all.trailers().into_iter().flat_map(HeaderMap::keys);
    trailers.map(|name| name.as_str().to_owned()).collect()
}

#[test]
fn claims_in_trailers_of_http_answers_reach_nobody() {
    // [wire-8] [wire-9]
    for (mode, expected) in
        [(Mode::Off, &["onus-claim", "checksum"][..]), (Mode::Observe, &["checksum"])]
    {
        for status in [200, 503] {
            paused(async {
                let onus = Onus::builder("checkout").mode(mode).build().unwrap();
                let mut node = serve(&onus, move |_: Request<Pieces>| async move {
                    Response::builder().status(status).body(body()).unwrap()
                });
                let served = ask(&mut node, get("/")).await;
                assert_eq!(names(served.into_body()).await, expected, "{mode:?} {status}");

                let reply = Reply::status(status)
                    .body([Piece::data("part"), Piece::Trailers(COPIED.to_vec())]);
                let client = onus.outbound("b").layer(Callee::new([reply]));
                let answer = client.oneshot(get("/")).await.unwrap();
                assert_eq!(names(answer.into_body()).await, expected, "{mode:?} {status}");
            });
        }
    }
}
