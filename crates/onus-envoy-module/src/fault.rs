//! Lets a test break hooks on purpose.

use onus_envoy::{Block, Stream};

/// Panics in the hook that this header of a request names, and in every hook if it says `1`.
const HEADER: &[u8] = b"x-onus-fault";

pub(crate) fn strike(hook: &str, stream: &impl Stream) {
    stream.each_line(Block::Request, &mut |name, value| {
        let struck = name == HEADER && (value == b"1" || value == hook.as_bytes());
        assert!(!struck, "a fault injected into a hook: {hook}");
    });
}
