//! Lets a test break hooks on purpose.

use onus_envoy::{Block, Stream};

/// Panics in each hook that sees this header, in a request or a response.
const HEADER: &[u8] = b"x-onus-fault";

pub(crate) fn strike(stream: &impl Stream) {
    for block in [Block::Request, Block::Response] {
        stream.each_line(block, &mut |name, _| {
            assert!(name != HEADER, "a fault injected into a hook")
        });
    }
}
