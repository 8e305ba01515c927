//! A request on its way to be sent, as reqwest's users know it.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Version};
use reqwest::{Body, Error, Request, Response};

use super::client::Client;
use crate::procedure::Procedure;

/// Builds a request and sends it; made by [`Client`]'s methods.
///
/// What reqwest's own builder can do beyond the methods here, [`Self::map`] reaches.
#[must_use = "a request does nothing until it is sent"]
pub struct RequestBuilder {
    client: Client,
    request: reqwest::RequestBuilder,
    procedure: Option<Procedure>,
}

impl RequestBuilder {
    pub(super) fn new(client: Client, request: reqwest::RequestBuilder) -> Self {
        Self { client, request, procedure: None }
    }

    /// Changes the request with reqwest's own builder: `.map(|request| request.json(&charge))`, and
    /// so with `query`, `form` and `multipart`, each behind reqwest's feature of that name.
    ///
    /// ```
    /// # fn with_own(payments: onus::reqwest::Client) {
    /// let charge = payments.post("http://payments/charge").map(|request| request.body("17 EUR"));
    /// # }
    /// ```
    pub fn map(
        self,
        change: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Self {
        Self { request: change(self.request), ..self }
    }

    /// Names the callee's route template, so that its procedures are told apart. Without one the
    /// method alone names the procedure.
    ///
    /// ```
    /// # fn with_template(payments: onus::reqwest::Client, id: u32) {
    /// let rate = payments.get(format!("http://payments/rate/{id}"));
    /// let rate = rate.procedure(onus::Procedure::route("/rate/{id}"));
    /// # }
    /// ```
    pub fn procedure(self, procedure: Procedure) -> Self {
        Self { procedure: Some(procedure), ..self }
    }

    /// Adds a header.
    pub fn header<K, V>(self, name: K, value: V) -> Self
    where
        HeaderName: TryFrom<K>,
        <HeaderName as TryFrom<K>>::Error: Into<http::Error>,
        HeaderValue: TryFrom<V>,
        <HeaderValue as TryFrom<V>>::Error: Into<http::Error>,
    {
        self.map(|request| request.header(name, value))
    }

    /// Merges headers in.
    pub fn headers(self, headers: HeaderMap) -> Self {
        self.map(|request| request.headers(headers))
    }

    /// Sets the credentials of HTTP basic authentication.
    pub fn basic_auth<U, P>(self, username: U, password: Option<P>) -> Self
    where
        U: fmt::Display,
        P: fmt::Display,
    {
        self.map(|request| request.basic_auth(username, password))
    }

    /// Sets the token of HTTP bearer authentication.
    pub fn bearer_auth<T: fmt::Display>(self, token: T) -> Self {
        self.map(|request| request.bearer_auth(token))
    }

    /// Sets the body.
    pub fn body<T: Into<Body>>(self, body: T) -> Self {
        self.map(|request| request.body(body))
    }

    /// Limits the time of each attempt, its response body included.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.map(|request| request.timeout(timeout))
    }

    /// Sets the HTTP version.
    pub fn version(self, version: Version) -> Self {
        self.map(|request| request.version(version))
    }

    /// A copy of the request; `None` if its body is a stream.
    #[must_use]
    pub fn try_clone(&self) -> Option<Self> {
        let request = self.request.try_clone()?;
        Some(Self { client: self.client.clone(), request, procedure: self.procedure.clone() })
    }

    /// The request, to be sent by [`Client::execute`].
    ///
    /// # Errors
    ///
    /// What reqwest could not take on the way here.
    pub fn build(self) -> Result<Request, Error> {
        self.request.build()
    }

    /// Sends the request; see [`Client::execute`].
    ///
    /// # Errors
    ///
    /// What reqwest could not take on the way here, or its error on the last attempt.
    pub fn send(self) -> impl Future<Output = Result<Response, Error>> + Send + use<> {
        let Self { client, request, procedure } = self;
        let started = request.build().map(|request| client.start(request, procedure));
        async move { started?.await }
    }
}

impl fmt::Debug for RequestBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.request, f)
    }
}
