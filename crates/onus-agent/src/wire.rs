//! What Onus says on the wire: the header names, and the text of claims, marks, attempts, vetoes
//! and deadlines (protocol §5).
//!
//! No other module spells a header name or reads a header's text, the token in `tracestate`
//! ([`crate::trace_context`]) and the status of a gRPC answer ([`crate::classify`]) apart. The
//! functions take one header block, a gRPC answer's trailers as well as a head, and decide
//! nothing.

mod attempt;
mod claim_headers;
mod claim_text;
mod deadline;
mod names;
mod pushback;
mod structured;
mod veto;

use http::header::IntoHeaderName;
use http::{HeaderMap, HeaderName, HeaderValue};

pub use attempt::{
    Carried, attempt_seen, is_marked, previous_attempts, write_attempt, write_mark,
    write_previous_attempts,
};
pub use claim_headers::{ClaimHeaders, ParsedClaim};
pub use claim_text::{CLAIM_MAX, ClaimText, InvalidClaim, ORIGIN_MAX};
pub use deadline::{time_allowed, write_time_allowed};
pub use names::*;
pub use pushback::pushback;
pub(crate) use veto::remove_own as remove_vetoes;
pub use veto::{write_should_not_retry, write_vetoes};

/// The first line of that name. Most blocks are small, and to compare a few names costs less than to
/// hash the one that is looked for.
#[inline]
#[must_use]
pub fn line<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    match headers.len() {
        0 => None,
        1..=FEW => headers.iter().find_map(|(other, value)| (other == name).then_some(value)),
        _ => headers.get(name),
    }
}

/// The most lines of a small block.
const FEW: usize = 6;

/// Writes one line in place of all of that name, and whether there was room: a block has an end,
/// and what finds it must not cost the message.
fn put(headers: &mut HeaderMap, name: impl IntoHeaderName, value: HeaderValue) -> bool {
    headers.try_insert(name, value).is_ok()
}
