//! Calls of the application beside the proxy to its callees.

use std::collections::HashMap;
use std::sync::Arc;

use http::header::{HOST, HeaderName, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::replay::ReplayBody;
use onus::{Correlation, Onus, OutboundService};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{AnswerBody, OwnError, is_grpc};
use crate::listener::Front;
use crate::passing::Passing;
use crate::pool::{Pool, PoolBody, PoolErrors};
use crate::request::refuse_ambiguous;

/// A callee: the outbound layer around the connections to it.
type Callee = OutboundService<Pool<ReplayBody<Incoming>>, PoolErrors>;

/// The callees of the application, by name.
pub(crate) struct Callees {
    by_host: HashMap<String, Callee>,
}

impl Callees {
    pub(crate) fn new() -> Self {
        Self { by_host: HashMap::new() }
    }

    /// Adds a callee under these names.
    pub(crate) fn add(
        &mut self,
        onus: &Onus,
        correlation: &Correlation,
        name: &str,
        hosts: impl IntoIterator<Item = String>,
        pool: Pool<ReplayBody<Incoming>>,
    ) {
        let layer = onus.outbound(name).across(correlation.clone()).trails();
        let callee = layer.classify_errors(PoolErrors).layer(pool);
        for host in hosts {
            self.by_host.insert(host.to_ascii_lowercase(), callee.clone());
        }
    }

    /// The callee of this authority, with its port or without.
    fn find(&self, authority: &str) -> Option<&Callee> {
        if let Some(callee) = self.by_host.get(authority) {
            return Some(callee);
        }
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        self.by_host.get(host).or_else(|| {
            let has_upper = authority.bytes().any(|byte| byte.is_ascii_uppercase());
            if has_upper { self.find(&authority.to_ascii_lowercase()) } else { None }
        })
    }
}

/// The outbound side.
#[derive(Clone)]
pub(crate) struct Outbound {
    callees: Arc<Callees>,
    /// The callee of a listener that has only one.
    only: Option<Arc<str>>,
}

impl Outbound {
    /// Calls go to the callee that each names.
    pub(crate) fn new(callees: Arc<Callees>) -> Self {
        Self { callees, only: None }
    }

    /// All calls go to this callee.
    pub(crate) fn only(callees: Arc<Callees>, name: &str) -> Self {
        Self { callees, only: Some(name.into()) }
    }

    /// The callee of a request, or the name that is nobody's.
    fn callee(&self, request: &mut Request<Incoming>) -> Result<Callee, OwnError> {
        let named = request.headers_mut().remove(ONUS_CALLEE);
        let host = request.headers().get(HOST);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let found = match (&named, &self.only) {
            (Some(named), _) => named.to_str().ok().and_then(|name| self.callees.find(name)),
            (None, Some(only)) => self.callees.find(only),
            (None, None) => match request.uri().authority() {
                Some(authority) => self.callees.find(authority.as_str()),
                None => host.and_then(|host| self.callees.find(host.to_str().ok()?)),
            },
        };
        found.cloned().ok_or_else(|| {
            let authority = request.uri().authority().map(ToString::to_string);
            let name = named.as_ref().map(text).or(authority).or_else(|| host.map(text));
            OwnError::unknown_callee(&name.unwrap_or_default())
        })
    }
}

impl Front for Outbound {
    type Body = AnswerBody<OutboundBody<PoolBody<ReplayBody<Incoming>>>>;

    async fn answer(self, mut request: Request<Incoming>) -> Response<Self::Body> {
        let grpc = is_grpc(request.headers());
        let found = refuse_ambiguous(&request).and_then(|()| self.callee(&mut request));
        let mut callee = match found {
            Ok(callee) => callee,
            Err(error) => return error.answer(grpc),
        };
        let passing = Passing::through(&mut request);
        match callee.call(request).await {
            Ok(response) => passing.back(response).map(|body| AnswerBody::Callee { body }),
            Err(error) => OwnError::from(&error).answer(grpc),
        }
    }
}

const ONUS_CALLEE: HeaderName = HeaderName::from_static("onus-callee");
