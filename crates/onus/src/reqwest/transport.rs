//! One attempt: the layer's request becomes reqwest's again.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::response::Builder;
use http_body::Body as _;
use onus_agent::CallError;
use pin_project_lite::pin_project;
use reqwest::{Body, Error, Request, ResponseBuilderExt, Url};
use tower_service::Service;

use crate::outbound::{AttemptError, ClassifyError};
use crate::replay::ReplayBody;

/// The wrapped client as the layer's inner service. Always ready, because reqwest's client is.
#[derive(Clone, Debug)]
pub(super) struct Transport(pub(super) reqwest::Client);

impl Service<http::Request<ReplayBody<Body>>> for Transport {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Attempt;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<ReplayBody<Body>>) -> Attempt {
        let (mut head, body) = request.into_parts();
        let target = head.extensions.remove::<Target>();
        let body = match &target {
            Some(Target { in_memory: true, .. }) => read_now(body).into(),
            Some(Target { in_memory: false, .. }) | None => Body::wrap(body),
        };
        let request = Request::try_from(http::Request::from_parts(head, body));
        match request {
            Ok(mut request) => {
                if let Some(target) = target {
                    *request.url_mut() = target.url;
                }
                Attempt::Sent { pending: self.0.call(request) }
            }
            Err(error) => Attempt::Refused { error: Some(error) },
        }
    }
}

/// What a request of reqwest has and one of `http` has not.
#[derive(Clone, Debug)]
pub(super) struct Target {
    /// With its fragment.
    url: Url,
    /// Whether all of the body is there, so that reqwest can send it again by itself: to the
    /// target of a redirect.
    in_memory: bool,
}

impl Target {
    pub(super) fn of(request: &Request) -> Self {
        let in_memory = request.body().is_none_or(|body| body.as_bytes().is_some());
        Self { url: request.url().clone(), in_memory }
    }
}

/// The data of a body that never waits.
fn read_now(body: ReplayBody<Body>) -> Bytes {
    let mut body = pin!(body);
    let mut cx = Context::from_waker(Waker::noop());
    let mut all = Bytes::new();
    while let Poll::Ready(Some(Ok(frame))) = body.as_mut().poll_frame(&mut cx) {
        let Ok(data) = frame.into_data() else { continue };
        // One frame, nearly always, which then is not copied.
        all = if all.is_empty() { data } else { [all, data].concat().into() };
    }
    all
}

pin_project! {
    /// The response of one attempt.
    #[project = AttemptProj]
    pub(super) enum Attempt {
        Sent { #[pin] pending: <reqwest::Client as Service<Request>>::Future },
        Refused { error: Option<Error> },
    }
}

impl Future for Attempt {
    type Output = Result<http::Response<Body>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            AttemptProj::Sent { pending } => {
                let response = ready!(pending.poll(cx))?;
                let url = response.url().clone();
                let mut response = http::Response::<Body>::from(response);
                remember_url(&mut response, url);
                Poll::Ready(Ok(response))
            }
            AttemptProj::Refused { error } => match error.take() {
                Some(error) => Poll::Ready(Err(error)),
                None => Poll::Pending,
            },
        }
    }
}

/// Puts the URL where reqwest looks for it when it takes the response back. What is there stays.
pub(super) fn remember_url<T>(response: &mut http::Response<T>, url: Url) {
    let Ok(only_url) = Builder::new().url(url).body(()) else { return };
    let mut extensions = only_url.into_parts().0.extensions;
    extensions.extend(std::mem::take(response.extensions_mut()));
    *response.extensions_mut() = extensions;
}

/// Tells reqwest's errors apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReqwestErrors;

impl ClassifyError<Error> for ReqwestErrors {
    fn classify(&self, error: &Error) -> AttemptError {
        // A timeout while connecting is both: nothing has been sent.
        AttemptError::Failed(if error.is_connect() {
            CallError::Connect
        } else if error.is_timeout() {
            CallError::Timeout
        } else if error.is_redirect() {
            CallError::Protocol
        } else {
            CallError::Reset
        })
    }
}
