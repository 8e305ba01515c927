//! Who acts in these tests: proxies, and peers that control every byte or frame.

// The peers are those of the layers.
#[path = "../../../onus/tests/frames/line.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod line;
#[path = "../../../onus/tests/frames/notes.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod notes;
mod proxies;
#[path = "../../../onus/tests/frames/raw.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod raw;
#[path = "../../../onus/tests/frames/streams.rs"]
#[expect(dead_code, reason = "not every test needs all that a peer can do")]
mod streams;

pub(crate) use line::{Line, lines};
pub(crate) use notes::Stub;
pub(crate) use proxies::{Client, TWICE, between, chained, proxy};
pub(crate) use raw::frames;
pub(crate) use streams::{streams, streams_with};
