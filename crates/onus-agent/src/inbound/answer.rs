//! What the answer to a request says: whose error it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use http::HeaderMap;
use onus_core::{Circumstances, ClaimVerdict, InboundCall, SlotId, Timestamp};

use super::{Inbound, Progress, Stage, Within};
use crate::edges::lock;
use crate::wire::{self, ClaimText};

/// The service that first failed, and how far below it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Its name.
    pub service: Arc<str>,
    /// Hops from the service that holds this value; 0 is that service itself.
    pub hops: u8,
}

impl Inbound {
    /// `inner`, which was served within this request, has been answered with these headers. Where
    /// its claim is found on the answer to this one, the two are the same request at two layers,
    /// and the inner one knows whose error it is.
    pub fn answered_within(&self, inner: &Self, headers: &HeaderMap) {
        if inner.is_of(self.agent())
            && let Some(claim) = headers.get(&wire::ONUS_CLAIM)
        {
            lock(&self.0.progress).within = Within::Said(claim.clone());
        }
    }

    /// Whether the claim on an answer is that of a layer within this one.
    fn stands(&self, headers: &HeaderMap) -> bool {
        let within = &mut lock(&self.0.progress).within;
        let stands = match within {
            Within::Said(claim) => headers.get(&wire::ONUS_CLAIM) == Some(&*claim),
            Within::Unknown | Within::Stands => false,
        };
        if stands {
            *within = Within::Stands;
        }
        stands
    }

    /// Makes the answer's headers say whose error it is; a success says nothing.
    ///
    /// `headers` is the block that carries the outcome: the head of an HTTP answer, the trailers
    /// of a gRPC one. To be called once; a second call changes nothing but to take copied claims
    /// out.
    pub fn answer(&self, failed: bool, grpc: bool, headers: &mut HeaderMap, now: Timestamp) {
        if !failed {
            self.answer_ok(headers);
            return;
        }
        let agent = &self.0.agent;
        let shield = agent.switches().shield_holds(now);
        if self.arm().is_off() && !shield {
            return;
        }
        let stands = self.stands(headers);
        if !stands {
            self.strip(headers);
        }
        if !self.advance(Stage::Answered) || self.is_faulted() || stands {
            return;
        }
        let at = Circumstances {
            shield,
            silent_claims: agent.silent_claims(),
            untied_calls: agent.untied_calls() != self.0.untied_before
                || self.0.untied_elsewhere.load(Ordering::Relaxed),
        };
        let judged = self.step(|progress| self.judge(progress, at)).flatten();
        let Some((verdict, origin)) = judged else { return };
        agent.tell_claim(self, &verdict, &origin);
        if !agent.trusts_callers() {
            return;
        }
        let text = ClaimText {
            reason: Some(verdict.reason),
            attempt: Some(self.0.attempt),
            hops: Some(origin.hops),
            origin: Some(origin.service.clone()),
            ..ClaimText::new(verdict.claim)
        };
        if !agent.claims().replace_claim(headers, Some(&text)) {
            return;
        }
        if verdict.vetoes {
            wire::write_vetoes(headers, grpc);
        }
        self.served_procedure().counters.arm(self.arm()).claim(&verdict);
    }

    /// [`Self::answer`] for a success, which needs no time.
    pub fn answer_ok(&self, headers: &mut HeaderMap) {
        // Where there is nothing to take out, the request need not be looked at.
        if !headers.is_empty() && !self.arm().is_off() {
            self.strip(headers);
        }
    }

    /// Takes claims that the application copied out of its answer, and all else of Onus's where
    /// the caller is outside of the trust boundary.
    fn strip(&self, headers: &mut HeaderMap) {
        let agent = &self.0.agent;
        if agent.trusts_callers() {
            agent.claims().replace_claim(headers, None);
        } else {
            agent.claims().strip_untrusted(headers);
        }
    }

    /// The claim, and the service that first failed.
    fn judge(&self, progress: &Progress, at: Circumstances) -> Option<(ClaimVerdict, Origin)> {
        let verdict = progress.call.claim(at)?;
        let origin = match verdict.deciding {
            None => Origin { service: self.0.agent.service().clone(), hops: 0 },
            Some(slot) => {
                let note = progress.notes.iter().rev().find(|note| note.slot == slot);
                let below = note.and_then(|note| note.origin.clone());
                let below = below.unwrap_or_else(|| self.callee_of(&progress.call, slot));
                Origin { hops: below.hops.saturating_add(1), ..below }
            }
        };
        Some((verdict, origin))
    }

    /// The callee of a call whose reply named no origin.
    fn callee_of(&self, call: &InboundCall, slot: SlotId) -> Origin {
        let edge = call.edge(slot).and_then(|id| self.0.agent.edge_by_id(id));
        let service = match edge {
            Some(edge) => self.0.agent.symbols().name(edge.key.callee),
            None => self.0.agent.service(),
        };
        Origin { service: service.clone(), hops: 0 }
    }
}
