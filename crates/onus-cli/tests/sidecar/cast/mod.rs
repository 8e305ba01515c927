//! Who acts in these tests: sidecars that are processes, and peers that control every byte.

#[path = "../../../../onus-envoy-module/tests/cast/envoy.rs"]
#[expect(dead_code, reason = "not every test needs all that an Envoy can do")]
pub(crate) mod envoy;
pub(crate) mod gateway;
// The peers are those of the layers.
#[path = "../../../../onus/tests/frames/line.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod line;
mod neighbour;
#[path = "../../../../onus/tests/frames/notes.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod notes;
mod page;
pub(crate) mod process;
mod relay;

pub(crate) use line::{Line, lines};
pub(crate) use neighbour::Neighbour;
pub(crate) use notes::Stub;
pub(crate) use page::Page;
pub(crate) use process::Sidecar;
pub(crate) use relay::relay;

/// An application that answers everything at once, with an empty body.
pub(crate) async fn answers(answer: &'static str) -> Stub {
    lines(move |mut line| async move {
        while line.request().await.is_some() {
            line.say(format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n")).await;
        }
    })
    .await
}
