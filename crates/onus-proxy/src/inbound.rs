//! Requests of others to the application beside the proxy.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use onus::InboundService;
use onus::inbound::InboundBody;
use onus::replay::Attempt;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{AnswerBody, OwnError, is_grpc};
use crate::client_error::ClientError;
use crate::forwarding::{Forwarder, Forwarding, Looped};
use crate::hop;
use crate::listener::Front;
use crate::max_forwards;
use crate::outbound::ONUS_CALLEE;
use crate::passing::Passing;
use crate::pool::{Pool, PoolBody};
use crate::proxy::State;
use crate::request::refuse_ambiguous;

/// The inbound side: the inbound layer around the application.
#[derive(Clone)]
pub(crate) struct Inbound {
    service: InboundService<Application>,
    forwarding: Option<Arc<Forwarding>>,
    /// Of the client that is served.
    forwarder: Option<Forwarder>,
}

impl Inbound {
    pub(crate) fn new(state: &Arc<State>, forwarding: Option<Arc<Forwarding>>) -> Self {
        let correlation = state.config.load().correlation.clone();
        let layer = state.onus.inbound().across(correlation);
        let routes = state.clone();
        let layer = layer.procedure(move |head| routes.config.load().routes.find(head.uri.path()));
        let service = layer.layer(Application(state.clone()));
        Self { service, forwarding, forwarder: None }
    }
}

impl Front for Inbound {
    type Body = InboundBody<AnswerBody<PoolBody<Incoming>>>;

    fn of(&self, client: SocketAddr, is_tls: bool) -> Self {
        let forwarder = self.forwarding.as_ref().map(|rules| rules.of(client, is_tls));
        Self { forwarder, ..self.clone() }
    }

    fn answer(
        mut self,
        mut request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send {
        hop::strip_named(request.headers_mut());
        // A word of the application to this sidecar, which no stranger has for it.
        request.headers_mut().remove(ONUS_CALLEE);
        if let Some(forwarder) = &self.forwarder
            && let Err(looped) = forwarder.pass(&mut request)
        {
            // Refused below the layer: that is an error of this service, with a claim.
            request.extensions_mut().insert(looped);
        }
        self.service.call(request)
    }
}

/// The application: where it cannot be reached, that is an error of this service too.
#[derive(Clone)]
struct Application(Arc<State>);

impl Service<Request<Incoming>> for Application {
    type Response = Response<AnswerBody<PoolBody<Incoming>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        // Boxed, because the futures of hyper's connections have no name.
        Box::pin(ask(self.0.clone(), Box::new(request)))
    }
}

async fn ask(
    state: Arc<State>,
    mut request: Box<Request<Incoming>>,
) -> Result<Response<AnswerBody<PoolBody<Incoming>>>, Infallible> {
    let grpc = is_grpc(request.headers());
    if let Err(refused) = refuse_ambiguous(&request, state.fields_max) {
        state.inbound.client_errors.count(refused.what);
        return Ok(refused.error.answer(grpc));
    }
    if request.extensions().get::<Looped>().is_some() {
        return Ok(OwnError::looped().answer(grpc));
    }
    if state.inbound.requests.count() > state.config.load().requests_max() {
        return Ok(OwnError::too_many().answer(grpc));
    }
    if let Some(answer) = max_forwards::spend(&mut request) {
        return Ok(answer);
    }
    let passing = Passing::through(&mut request);
    let app = Pool::clone(&state.app.load());
    Ok(match app.send(request, Attempt::FIRST, None).await {
        Ok(mut response) => {
            match passing.back(&mut response, &state.tunnels, &state.inbound.connections) {
                Ok(()) => response.map(|body| AnswerBody::Callee { body }),
                Err(error) => error.answer(grpc),
            }
        }
        Err(error) => {
            if error.is_malformed_request() {
                state.inbound.client_errors.count(ClientError::Malformed);
            }
            OwnError::from(&error).answer(grpc)
        }
    })
}
