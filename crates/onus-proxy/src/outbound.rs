//! Calls of the application beside the proxy to its callees.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{HOST, HeaderName, HeaderValue};
use http::{Request, Response};
use hyper::body::Incoming;
use onus::outbound::OutboundBody;
use onus::replay::ReplayBody;
use onus::{Onus, OutboundService};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{AnswerBody, OwnError, is_grpc};
use crate::client_error::ClientError;
use crate::config::{CalleeConfig, ProxyConfig, ProxyConfigError};
use crate::forwarding::{Forwarder, Forwarding};
use crate::hop;
use crate::hosts::Hosts;
use crate::listener::Front;
use crate::max_forwards;
use crate::passing::Passing;
use crate::pool::{Dial, Pool, PoolBody, PoolErrors, PoolView};
use crate::proxy::State;
use crate::request::refuse_ambiguous;
use crate::tail::AccessLog;
use crate::tls::ClientTls;

/// A callee: the outbound layer around the connections to it.
type Callee = OutboundService<Pool<ReplayBody<Incoming>>, PoolErrors>;

/// The callees of the application.
pub(crate) struct Callees {
    by_host: Hosts<Callee>,
    by_name: Vec<Named>,
}

/// A callee with what it was made from.
struct Named {
    config: CalleeConfig,
    tls: Option<Arc<ClientTls>>,
    pool: Pool<ReplayBody<Incoming>>,
}

impl Callees {
    /// The callees of a configuration. Those that were there before, under another one, keep their
    /// connections if what these are made from is the same.
    pub(crate) fn of(
        config: &ProxyConfig,
        onus: &Onus,
        own: &Arc<[SocketAddr]>,
        log: &Arc<AccessLog>,
        before: Option<(&ProxyConfig, &Self)>,
    ) -> Result<Self, ProxyConfigError> {
        let limits = config.pool_limits();
        let before = before.filter(|(before, _)| before.pool_limits() == limits);
        let mut callees = Self { by_host: Hosts::default(), by_name: Vec::new() };
        for callee in &config.callees {
            let known = before.and_then(|(_, before)| before.pool_of(callee));
            let (pool, tls) = match known {
                Some(known) => known,
                None => {
                    let tls = callee.client_tls()?;
                    let own = own.clone();
                    let dial = Dial { timeout: limits.connect, tls: tls.clone(), own };
                    let (target, replay) = (callee.target.clone(), onus.replay_limits().clone());
                    let (name, protocol) = (&callee.name, callee.protocol);
                    (Pool::new(name, log, target, protocol, dial, limits, replay), tls)
                }
            };
            let layer = onus.outbound(&callee.name).across(config.correlation.clone()).trails();
            let routes = callee.routes.clone();
            let layer = layer.procedure(move |head| routes.find(head.uri.path()));
            let service = layer.classify_errors(PoolErrors).layer(pool.clone());
            for host in callee.hosts.iter().chain(&callee.implied_hosts) {
                callees.by_host.insert(host, service.clone());
            }
            callees.by_name.push(Named { config: callee.clone(), tls, pool });
        }
        Ok(callees)
    }

    /// Reads certificates anew whose files have changed.
    pub(crate) fn follow_certificates(&self) {
        self.by_name.iter().filter_map(|callee| callee.tls.as_ref()).for_each(|tls| tls.follow());
    }

    fn pool_of(&self, callee: &CalleeConfig) -> Option<Connections> {
        let same = |known: &&Named| {
            known.config.name == callee.name
                && known.config.target == callee.target
                && known.config.protocol == callee.protocol
                && known.config.tls == callee.tls
        };
        self.by_name.iter().find(same).map(|known| (known.pool.clone(), known.tls.clone()))
    }

    /// What there is of connections to each.
    pub(crate) fn views(&self) -> impl Iterator<Item = PoolView> {
        self.by_name.iter().map(|callee| callee.pool.view())
    }

    /// The callee of this authority, with its port or without.
    fn find(&self, authority: &str) -> Option<&Callee> {
        self.by_host.find(authority)
    }
}

/// A pool, and whose certificate it asks for.
type Connections = (Pool<ReplayBody<Incoming>>, Option<Arc<ClientTls>>);

/// The outbound side.
#[derive(Clone)]
pub(crate) struct Outbound {
    state: Arc<State>,
    /// The callee of a listener that has only one.
    only: Option<Arc<str>>,
    forwarding: Option<Arc<Forwarding>>,
    /// Of the client that is served.
    forwarder: Option<Forwarder>,
}

impl Outbound {
    /// Calls go to the callee that each names.
    pub(crate) fn new(state: &Arc<State>, forwarding: Option<Arc<Forwarding>>) -> Self {
        Self { state: state.clone(), only: None, forwarding, forwarder: None }
    }

    /// All calls go to this callee.
    pub(crate) fn only(&self, name: &str) -> Self {
        Self { only: Some(name.into()), ..self.clone() }
    }

    /// The callee of a request, or the name that is nobody's.
    fn callee(&self, request: &mut Request<Incoming>) -> Result<Callee, OwnError> {
        let named = request.headers_mut().remove(ONUS_CALLEE);
        let host = request.headers().get(HOST);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let callees = self.state.callees.load();
        let found = match (&named, &self.only) {
            (Some(named), _) => named.to_str().ok().and_then(|name| callees.find(name)),
            (None, Some(only)) => callees.find(only),
            (None, None) => match request.uri().authority() {
                Some(authority) => callees.find(authority.as_str()),
                None => host.and_then(|host| callees.find(host.to_str().ok()?)),
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

    fn of(&self, client: SocketAddr, is_tls: bool) -> Self {
        let forwarder = self.forwarding.as_ref().map(|rules| rules.of(client, is_tls));
        Self { forwarder, ..self.clone() }
    }

    async fn answer(
        self,
        mut request: Request<Incoming>,
    ) -> Result<Response<Self::Body>, Infallible> {
        hop::strip_named(request.headers_mut());
        let grpc = is_grpc(request.headers());
        if let Err(refused) = refuse_ambiguous(&request, self.state.fields_max) {
            self.state.outbound.client_errors.count(refused.what);
            return Ok(refused.error.answer(grpc));
        }
        if let Some(forwarder) = &self.forwarder
            && forwarder.pass(&mut request).is_err()
        {
            return Ok(OwnError::looped().answer(grpc));
        }
        let mut callee = match self.callee(&mut request) {
            Ok(callee) => callee,
            Err(error) => return Ok(error.answer(grpc)),
        };
        if let Some(answer) = max_forwards::spend(&mut request) {
            return Ok(answer);
        }
        let passing = Passing::through(&mut request);
        Ok(match callee.call(request).await {
            Ok(mut response) => {
                if let Some(forwarder) = &self.forwarder {
                    forwarder.back(&mut response);
                }
                let state = &self.state;
                match passing.back(&mut response, &state.tunnels, &state.outbound.connections) {
                    Ok(()) => response.map(|body| AnswerBody::Callee { body }),
                    Err(error) => error.answer(grpc),
                }
            }
            Err(error) => {
                if error.is_malformed_request() {
                    self.state.outbound.client_errors.count(ClientError::Malformed);
                }
                OwnError::from(&error).answer(grpc)
            }
        })
    }
}

/// By which the application names a callee.
pub(crate) const ONUS_CALLEE: HeaderName = HeaderName::from_static("onus-callee");
