//! tonic on both sides: its server under the inbound layer, its channel under the outbound.

use bytes::{BufMut, Bytes};
use onus::RetryPolicy;

mod errors;
mod headers;
mod node;
mod statuses;
mod streams;
mod time;
pub(crate) mod wire;

/// Two attempts, and nothing else that could stop a retry.
fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes()
}

/// A message as gRPC frames it.
fn framed(text: &str) -> Bytes {
    let mut frame = vec![0];
    frame.put_u32(u32::try_from(text.len()).expect("short"));
    frame.extend_from_slice(text.as_bytes());
    frame.into()
}
