//! One line of the access log for each attempt, where somebody asks for it: with the target
//! `onus::access` at level `info`.

use std::sync::Arc;

use http::{HeaderMap, Method, Request, Response};
use onus::claim::{Claim, ClaimHeaders, ClaimReason, ParsedClaim};
use onus::replay::Attempt;
use tokio::time::Instant;
use tracing::Level;

use super::body::PoolBody;
use super::error::PoolError;

/// An attempt that is under way and will be a line.
pub(super) struct Entry {
    callee: Arc<str>,
    method: Method,
    path: String,
    attempt: Attempt,
    begun: Instant,
}

impl Entry {
    /// Of an attempt, where somebody asks for lines.
    pub(super) fn begin<B>(
        callee: &Arc<str>,
        request: &Request<B>,
        attempt: Attempt,
    ) -> Option<Self> {
        if !tracing::enabled!(target: "onus::access", Level::INFO) {
            return None;
        }
        Some(Self {
            callee: callee.clone(),
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            attempt,
            begun: Instant::now(),
        })
    }

    /// The attempt has its response head, or none.
    pub(super) fn end<B: Send + 'static>(self, sent: &Result<Response<PoolBody<B>>, PoolError>) {
        let (status, error) = match sent {
            Ok(response) => (response.status().as_u16(), String::new()),
            Err(error) => (0, error.to_string()),
        };
        let said = sent.as_ref().map_or(Said::NOTHING, |response| Said::read(response.headers()));
        let instance = sent.as_ref().map_or_else(
            |error| error.address().map(|address| address.to_string()),
            |response| response.body().instance().map(|address| address.to_string()),
        );
        tracing::info!(
            target: "onus::access",
            callee = &*self.callee,
            instance = instance.unwrap_or_default(),
            attempt = self.attempt.number(),
            method = self.method.as_str(),
            path = self.path,
            status,
            ms = self.begun.elapsed().as_millis() as u64,
            retry = said.retry,
            cause = said.cause,
            origin = said.origin,
            hops = said.hops,
            error,
        );
    }
}

/// What an answer says of its error, in the words for people.
struct Said {
    retry: &'static str,
    cause: &'static str,
    origin: String,
    hops: u8,
}

impl Said {
    const NOTHING: Self = Self { retry: "", cause: "unknown", origin: String::new(), hops: 0 };

    fn read(headers: &HeaderMap) -> Self {
        let ParsedClaim::Valid(text) = ClaimHeaders::default().read(headers) else {
            return Self::NOTHING;
        };
        Self {
            retry: match text.claim {
                Claim::Claimed | Claim::ClaimedSilent => "open",
                Claim::Unclaimed | Claim::UnclaimedShield => "closed",
            },
            cause: match text.reason {
                None | Some(ClaimReason::ContextLost | ClaimReason::Operator) => "unknown",
                Some(ClaimReason::Own) => "self",
                Some(
                    ClaimReason::Handoff
                    | ClaimReason::Silent
                    | ClaimReason::Stopped(_)
                    | ClaimReason::InFlight,
                ) => "dependency",
            },
            origin: text.origin.map(|origin| origin.to_string()).unwrap_or_default(),
            hops: text.hops.unwrap_or(0),
        }
    }
}
