//! The client that applications hold.

use std::fmt;
use std::future::Future;

use reqwest::{Body, Error, IntoUrl, Method, Request, Response, Url};
use tower_layer::Layer;
use tower_service::Service;

use super::request::RequestBuilder;
use super::transport::{ReqwestErrors, Target, Transport, remember_url};
use crate::outbound::{OutboundBody, OutboundLayer, OutboundService};

/// A client of one callee; see [`OutboundLayer::reqwest`]. Cheap to clone, like the client in it.
#[derive(Clone)]
pub struct Client {
    client: reqwest::Client,
    calls: OutboundService<Transport, ReqwestErrors>,
}

impl<C> OutboundLayer<C> {
    /// Wraps a reqwest client.
    #[must_use]
    pub fn reqwest(self, client: reqwest::Client) -> Client {
        let layer = self.classify_errors(ReqwestErrors);
        let calls = layer.layer(Transport(client.clone()));
        Client { client, calls }
    }
}

impl Client {
    /// Starts to build a `GET` request.
    pub fn get<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// Starts to build a `POST` request.
    pub fn post<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// Starts to build a `PUT` request.
    pub fn put<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// Starts to build a `PATCH` request.
    pub fn patch<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// Starts to build a `DELETE` request.
    pub fn delete<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Starts to build a `HEAD` request.
    pub fn head<U: IntoUrl>(&self, url: U) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// Starts to build a request.
    pub fn request<U: IntoUrl>(&self, method: Method, url: U) -> RequestBuilder {
        RequestBuilder::new(self.clone(), self.client.request(method, url))
    }

    /// Sends `request`. The call belongs to the request that is served where this is called, and
    /// starts here.
    ///
    /// The response's extensions say as [`CallOutcome`](crate::CallOutcome) how a call failed. An
    /// attempt that a policy's time limit ends is a response with status 504.
    ///
    /// # Errors
    ///
    /// The error of the wrapped client on the last attempt, where there was no reply; there is then
    /// no [`CallOutcome`](crate::CallOutcome).
    pub fn execute(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        self.start(request, None)
    }

    pub(super) fn start(
        &self,
        request: Request,
        procedure: Option<crate::Procedure>,
    ) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        let url = request.url().clone();
        let target = Target::of(&request);
        let started = http::Request::<Body>::try_from(request).map(|mut request| {
            request.extensions_mut().insert(target);
            if let Some(procedure) = procedure {
                request.extensions_mut().insert(procedure);
            }
            // The transport is always ready.
            self.calls.clone().call(request)
        });
        async move {
            match started {
                Ok(answer) => Ok(response(url, answer.await?)),
                Err(error) => Err(error.with_url(url)),
            }
        }
    }
}

/// The response as reqwest's own type. `url` is that of an answer which the layer made itself; the
/// callee's has the URL to which redirects have led.
fn response(url: Url, answer: http::Response<OutboundBody<Body>>) -> Response {
    let mut answer = answer.map(Body::wrap);
    remember_url(&mut answer, url);
    Response::from(answer)
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("client", &self.client).finish_non_exhaustive()
    }
}
