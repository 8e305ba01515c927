//! A layer below that retries, where the host can see what it does and tell it what to do.
//!
//! An Envoy filter knows the attempts of its router and the refusals of its limits, and stands
//! between it and the answers.

use http::HeaderMap;
use onus_core::{Retry, RetryCause, Verdict};

use super::{Outbound, Owner};
use crate::wire;

impl Outbound {
    /// A layer below has made so many attempts of the one under way, as the host can see for
    /// itself: an Envoy filter knows the attempts of its router. To be told before what the attempt
    /// came to, or before the call is given up.
    pub fn attempts_below(&mut self, attempts: u32) {
        self.call.on_attempts_below(attempts);
        if let Owner::Request(inbound, slot) = &self.owner {
            inbound.on_attempt(*slot, self.call.tries());
        }
    }

    /// A layer below would have made another attempt, and its own budget or breaker refused it. To
    /// be told before what the last attempt came to.
    pub fn denied_below(&mut self) {
        self.call.on_denied_below();
    }

    /// Makes a failed answer say to the layer below that retries what `verdict` says: it obeys vetoes,
    /// and knows of no verdict.
    pub fn tell_layer_below(&self, verdict: &Verdict, headers: &mut HeaderMap) {
        match verdict {
            Verdict::Stop(stop) if stop.is_refusal() => wire::write_vetoes(headers, false),
            // What the callee's veto forbids is tried all the same.
            Verdict::Retry(Retry { cause: RetryCause::Probe, .. }) => wire::remove_vetoes(headers),
            Verdict::Stop(_) | Verdict::Retry(_) => {}
        }
    }
}
