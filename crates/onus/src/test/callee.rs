//! A callee that does what its script says, and notes what it was sent.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::{Request, Response};
use http_body::Body;
use onus_agent::{CallError, wire};
use tower_layer::Layer;
use tower_service::Service;

use super::answer::Answer;
use super::body::AnswerBody;
use crate::outbound::{AttemptError, ClassifyError, OutboundLayer, OutboundService};

/// A callee that answers each attempt by its script, the last answer again and again; without a
/// script it is always well. All clones are the same callee.
///
/// It is a tower service: give it to [`OutboundLayer::test`], or [`listen`](Self::listen).
#[derive(Clone, Debug)]
pub struct Callee(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    script: Vec<Answer>,
    received: Mutex<Vec<Received>>,
}

/// One attempt, as a [`Callee`] received it.
#[derive(Clone, Debug)]
pub struct Received {
    /// Which attempt of the call it is, as its headers say.
    pub attempt: u32,
    /// Whether it carries the mark.
    pub marked: bool,
    /// The request; its body is there when it has been read to its end.
    pub request: Request<Bytes>,
}

impl Callee {
    /// A callee with this script.
    #[must_use]
    pub fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        let mut script: Vec<_> = script.into_iter().collect();
        if script.is_empty() {
            script.push(Answer::ok());
        }
        Self(Arc::new(Shared { script, received: Mutex::default() }))
    }

    /// How many attempts came.
    #[must_use]
    pub fn attempts(&self) -> usize {
        self.received_so_far().len()
    }

    /// Every attempt that came, in their order.
    #[must_use]
    pub fn received(&self) -> Vec<Received> {
        self.received_so_far().clone()
    }

    fn received_so_far(&self) -> MutexGuard<'_, Vec<Received>> {
        self.0.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what came; its place, and the answer to it.
    fn receive(&self, request: Request<Bytes>) -> (usize, Answer) {
        let headers = request.headers();
        let (attempt, marked) = (wire::attempt_seen(headers), wire::is_marked(headers));
        let mut received = self.received_so_far();
        let place = received.len();
        received.push(Received { attempt, marked, request });
        // There is a last answer, always.
        let last = self.0.script.len().saturating_sub(1);
        (place, self.0.script[place.min(last)].clone())
    }
}

impl<B> Service<Request<B>> for Callee
where
    B: Body + Send + 'static,
{
    type Response = Response<AnswerBody>;
    type Error = NoAnswer;
    type Future = Pin<Box<dyn Future<Output = Result<Response<AnswerBody>, NoAnswer>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), NoAnswer>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (head, body) = request.into_parts();
        let (place, answer) = self.receive(Request::from_parts(head, Bytes::new()));
        let callee = self.clone();
        Box::pin(async move {
            let body = read(body).await;
            if let Some(received) = callee.received_so_far().get_mut(place) {
                *received.request.body_mut() = body;
            }
            answer.wait().await;
            answer.make()
        })
    }
}

/// The data of a body, as far as it comes.
async fn read(body: impl Body) -> Bytes {
    let mut body = pin!(body);
    let mut all = BytesMut::new();
    while let Some(Ok(frame)) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        if let Ok(mut data) = frame.into_data() {
            all.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
    }
    all.freeze()
}

impl<C> OutboundLayer<C> {
    /// Takes a scripted callee for the client of this one.
    #[must_use]
    pub fn test(self, callee: Callee) -> OutboundService<Callee, TestErrors> {
        self.classify_errors(TestErrors).layer(callee)
    }
}

/// What a client has where the script gives no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the script has no answer")]
pub struct NoAnswer(pub CallError);

/// Tells the errors of a [`Callee`] as its script does.
#[derive(Clone, Copy, Debug, Default)]
pub struct TestErrors;

impl ClassifyError<NoAnswer> for TestErrors {
    fn classify(&self, error: &NoAnswer) -> AttemptError {
        AttemptError::Failed(error.0)
    }
}
