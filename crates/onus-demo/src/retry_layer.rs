//! Retries by a layer below Onus that knows nothing of it: tower's, as an SDK or a proxy would
//! make them.

use std::future::{Ready, ready};

use bytes::Bytes;
use http::{HeaderName, Request, Response};
use http_body_util::Full;
use tower::retry::Policy;

use crate::protocol::is_error;

/// A retry layer below Onus. It retries every error that it sees in the head of an answer at once,
/// repeats the headers of the first attempt and says which attempt it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLayer {
    /// The most attempts, the first included.
    pub attempts: u32,
    /// Whether it stops at a veto, as Envoy does.
    pub obeys_vetoes: bool,
}

/// The attempts of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempts {
    made: u32,
    most: u32,
    obeys_vetoes: bool,
}

impl Attempts {
    /// A call through this layer; without one there is one attempt.
    pub(crate) fn through(layer: Option<RetryLayer>) -> Self {
        let layer = layer.unwrap_or(RetryLayer { attempts: 1, obeys_vetoes: false });
        Self { made: 1, most: layer.attempts, obeys_vetoes: layer.obeys_vetoes }
    }
}

impl<B, E> Policy<Request<Full<Bytes>>, Response<B>, E> for Attempts {
    type Future = Ready<()>;

    fn retry(
        &mut self,
        request: &mut Request<Full<Bytes>>,
        result: &mut Result<Response<B>, E>,
    ) -> Option<Ready<()>> {
        if let Ok(response) = result {
            let vetoed = self.obeys_vetoes && response.headers().contains_key(VETO);
            if vetoed || !is_error(response) {
                return None;
            }
        }
        if self.made >= self.most {
            return None;
        }
        self.made += 1;
        request.headers_mut().insert(ATTEMPT, self.made.into());
        Some(ready(()))
    }

    fn clone_request(&mut self, request: &Request<Full<Bytes>>) -> Option<Request<Full<Bytes>>> {
        (self.made < self.most).then(|| request.clone())
    }
}

const VETO: HeaderName = HeaderName::from_static("x-envoy-ratelimited");
const ATTEMPT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");
