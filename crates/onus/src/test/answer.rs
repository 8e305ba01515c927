//! What a scripted callee does with one attempt.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use onus_agent::wire::{ClaimHeaders, ClaimText, GRPC_STATUS};
use onus_agent::{CallError, Claim, ClaimReason, Stop};

use super::body::AnswerBody;
use super::callee::NoAnswer;

/// What a [`Callee`](super::Callee) does with one attempt.
#[derive(Clone, Debug)]
#[must_use]
pub struct Answer {
    act: Act,
    after: Duration,
    headers: HeaderMap,
    claim: Option<ClaimText>,
    body: Bytes,
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Http(StatusCode),
    Grpc(u8),
    Fail(NoAnswer),
    Hang,
}

impl Answer {
    /// HTTP 200.
    pub fn ok() -> Self {
        Self::acts(Act::Http(StatusCode::OK))
    }

    /// This HTTP status.
    ///
    /// # Panics
    ///
    /// If it is none.
    pub fn status(status: u16) -> Self {
        Self::acts(Act::Http(StatusCode::from_u16(status).expect("an HTTP status")))
    }

    /// This gRPC status: in the trailers where the answer has a [`message`](Self::message), else in
    /// its one header block.
    pub fn grpc(code: u8) -> Self {
        Self::acts(Act::Grpc(code))
    }

    /// This error: where it is no reply, the client has nothing else.
    pub fn error(error: CallError) -> Self {
        match error {
            CallError::Http(status) => Self::status(status),
            CallError::Grpc(code) => Self::grpc(code),
            CallError::Connect | CallError::Reset | CallError::Protocol | CallError::Timeout => {
                Self::acts(Act::Fail(NoAnswer(error)))
            }
        }
    }

    /// Nothing, for as long as the client waits.
    pub fn silent() -> Self {
        Self::acts(Act::Hang)
    }

    fn acts(act: Act) -> Self {
        let headers = HeaderMap::new();
        Self { act, after: Duration::ZERO, headers, claim: None, body: Bytes::new() }
    }

    /// Says that a retry is open: the callee itself has failed.
    pub fn claimed(self) -> Self {
        self.claims(Claim::Claimed, ClaimReason::Own)
    }

    /// Says that no retry is open: one was made below.
    pub fn unclaimed(self) -> Self {
        self.claims(Claim::Unclaimed, ClaimReason::Stopped(Stop::Exhausted))
    }

    fn claims(mut self, claim: Claim, reason: ClaimReason) -> Self {
        self.claim = Some(ClaimText { reason: Some(reason), ..ClaimText::new(claim) });
        self
    }

    /// Gives the claim this reason for ending the retries below; it has one by itself.
    pub fn reason(mut self, stop: Stop) -> Self {
        if let Some(claim) = &mut self.claim {
            claim.reason = Some(ClaimReason::Stopped(stop));
        }
        self
    }

    /// Names in the claim the service that failed first, and how many hops below the callee it is.
    pub fn origin(mut self, service: impl Into<Arc<str>>, hops: u8) -> Self {
        if let Some(claim) = &mut self.claim {
            (claim.origin, claim.hops) = (Some(service.into()), Some(hops));
        }
        self
    }

    /// Adds a header to the block that has the status.
    ///
    /// # Panics
    ///
    /// If the name is not in lower case, or either is no header.
    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    /// Adds a message to a gRPC answer, framed as gRPC frames it.
    ///
    /// # Panics
    ///
    /// If it is longer than gRPC allows.
    pub fn message(mut self, message: impl AsRef<[u8]>) -> Self {
        let message = message.as_ref();
        let mut all = BytesMut::from(&*self.body);
        all.put_u8(0);
        all.put_u32(u32::try_from(message.len()).expect("a message of less than 4 GiB"));
        all.put_slice(message);
        self.body = all.into();
        self
    }

    /// Does all this as much later.
    pub fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// Waits as long as the script says.
    pub(super) async fn wait(&self) {
        if !self.after.is_zero() {
            tokio::time::sleep(self.after).await;
        }
        match self.act {
            Act::Hang => std::future::pending().await,
            Act::Http(_) | Act::Grpc(_) | Act::Fail(_) => {}
        }
    }

    /// What comes then.
    pub(super) fn make(self) -> Result<Response<AnswerBody>, NoAnswer> {
        let mut block = self.headers;
        if let Some(claim) = &self.claim {
            ClaimHeaders::default().replace_claim(&mut block, Some(claim));
        }
        let mut answer = Response::new(AnswerBody::default());
        match self.act {
            Act::Fail(error) => return Err(error),
            Act::Http(status) => {
                *answer.status_mut() = status;
                *answer.headers_mut() = block;
                *answer.body_mut() = AnswerBody::new(self.body, None);
            }
            Act::Grpc(code) => {
                block.insert(&GRPC_STATUS, HeaderValue::from(u16::from(code)));
                if self.body.is_empty() {
                    *answer.headers_mut() = block;
                } else {
                    *answer.body_mut() = AnswerBody::new(self.body, Some(block));
                }
                let grpc = HeaderValue::from_static("application/grpc");
                answer.headers_mut().insert(header::CONTENT_TYPE, grpc);
            }
            // The wait before this one has no end.
            Act::Hang => {}
        }
        Ok(answer)
    }
}
