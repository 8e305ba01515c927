//! A callee that does what its script says, and notes what it was sent.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use onus::replay::BoxError;
use tokio::time::Instant;
use tower::Service;

use super::body::{Broken, Piece, Pieces, block};

/// A client service whose answers are scripted; the last one is given again and again.
///
/// It insists on tower's contract: each call through a handle needs that handle's readiness.
pub(crate) struct Callee {
    shared: Arc<Shared>,
    ready: bool,
}

struct Shared {
    script: Vec<Reply>,
    start: Instant,
    seen: Mutex<Vec<Seen>>,
}

/// What happens to one attempt.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    act: Act,
    after: Duration,
    reads: Reads,
}

#[derive(Clone, Debug)]
enum Act {
    Answer { status: u16, headers: Vec<(&'static str, &'static str)>, body: Vec<Piece> },
    Break,
    Hang,
}

/// How much of the request's body is read before the answer.
#[derive(Clone, Copy, Debug)]
enum Reads {
    All,
    OneFrame,
    Nothing,
}

/// What one attempt brought.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
    /// What was read of the body; an error in it is in the text.
    pub(crate) body: Bytes,
    pub(crate) body_error: Option<String>,
    /// Since the callee was made.
    pub(crate) at: Duration,
}

impl Callee {
    pub(crate) fn new(script: impl IntoIterator<Item = Reply>) -> Self {
        let script: Vec<_> = script.into_iter().collect();
        assert!(!script.is_empty(), "a callee needs something to do");
        let shared = Shared { script, start: Instant::now(), seen: Mutex::default() };
        Self { shared: Arc::new(shared), ready: false }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Number of the attempt and the mark, as each attempt carried them: "-", "2", "2 marked".
    pub(crate) fn attempts(&self) -> Vec<String> {
        let text = |seen: &Seen| {
            let number = seen.headers.get("onus-attempt").map(|value| value.to_str().unwrap());
            let mark = seen.headers.get("onus-mark").map(|_| " marked").unwrap_or_default();
            format!("{}{mark}", number.unwrap_or("-"))
        };
        self.seen().iter().map(text).collect()
    }
}

impl Reply {
    pub(crate) fn status(status: u16) -> Self {
        let act = Act::Answer { status, headers: Vec::new(), body: Vec::new() };
        Self { act, after: Duration::ZERO, reads: Reads::All }
    }

    pub(crate) fn ok() -> Self {
        Self::status(200)
    }

    /// An error with this claim.
    pub(crate) fn says(claim: &'static str) -> Self {
        Self::status(503).header("onus-claim", claim)
    }

    /// No answer: the connection breaks.
    pub(crate) fn breaks() -> Self {
        Self { act: Act::Break, ..Self::ok() }
    }

    pub(crate) fn hangs() -> Self {
        Self { act: Act::Hang, ..Self::ok() }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        if let Act::Answer { headers, .. } = &mut self.act {
            headers.push((name, value));
        }
        self
    }

    pub(crate) fn body(mut self, pieces: impl IntoIterator<Item = Piece>) -> Self {
        if let Act::Answer { body, .. } = &mut self.act {
            body.extend(pieces);
        }
        self
    }

    pub(crate) fn after(mut self, after: Duration) -> Self {
        self.after = after;
        self
    }

    /// Answers when one frame of the request's body has come.
    pub(crate) fn early(mut self) -> Self {
        self.reads = Reads::OneFrame;
        self
    }

    /// Answers without a look at the request's body.
    pub(crate) fn unread(mut self) -> Self {
        self.reads = Reads::Nothing;
        self
    }
}

impl Clone for Callee {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), ready: false }
    }
}

impl<B> Service<Request<B>> for Callee
where
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    type Response = Response<Pieces>;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Pieces>, Broken>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without being ready");
        let (head, body) = request.into_parts();
        let shared = self.shared.clone();
        let number = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(Seen {
                headers: head.headers,
                body: Bytes::new(),
                body_error: None,
                at: shared.start.elapsed(),
            });
            seen.len() - 1
        };
        let reply = shared.script[number.min(shared.script.len() - 1)].clone();
        Box::pin(async move {
            let mut body = Box::pin(body);
            let most = match reply.reads {
                Reads::All => usize::MAX,
                Reads::OneFrame => 1,
                Reads::Nothing => 0,
            };
            let (data, error) = take(&mut body, most).await;
            {
                let seen = &mut shared.seen.lock().unwrap()[number];
                (seen.body, seen.body_error) = (data, error.map(|error| error.to_string()));
            }
            tokio::time::sleep(reply.after).await;
            match reply.act {
                Act::Answer { status, headers, body } => {
                    let mut response = Response::new(Pieces::new(body));
                    *response.status_mut() = status.try_into().unwrap();
                    *response.headers_mut() = block(&headers);
                    Ok(response)
                }
                Act::Break => Err(Broken("the connection broke")),
                Act::Hang => std::future::pending().await,
            }
        })
    }
}

async fn take<B>(body: &mut Pin<Box<B>>, most: usize) -> (Bytes, Option<BoxError>)
where
    B: Body<Data = Bytes, Error = BoxError>,
{
    let mut all = Vec::new();
    for _ in 0..most {
        match body.frame().await {
            Some(Ok(frame)) => all.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new())),
            Some(Err(error)) => return (all.into(), Some(error)),
            None => break,
        }
    }
    (all.into(), None)
}
