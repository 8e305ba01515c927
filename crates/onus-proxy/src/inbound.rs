//! Requests of others to the application beside the proxy.

use std::convert::Infallible;
use std::future::Future;
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
use crate::listener::Front;
use crate::passing::Passing;
use crate::pool::PoolBody;
use crate::proxy::State;
use crate::request::refuse_ambiguous;

/// The inbound side: the inbound layer around the application.
#[derive(Clone)]
pub(crate) struct Inbound(InboundService<Application>);

impl Inbound {
    pub(crate) fn new(state: &Arc<State>) -> Self {
        let correlation = state.config.load().correlation.clone();
        let layer = state.onus.inbound().across(correlation);
        let routes = state.clone();
        let layer = layer.procedure(move |head| routes.config.load().routes.find(head.uri.path()));
        Self(layer.layer(Application(state.clone())))
    }
}

impl Front for Inbound {
    type Body = InboundBody<AnswerBody<PoolBody<Incoming>>>;

    fn answer(
        mut self,
        request: Request<Incoming>,
    ) -> impl Future<Output = Result<Response<Self::Body>, Infallible>> + Send {
        self.0.call(request)
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
    if let Err(error) = refuse_ambiguous(&request) {
        state.inbound.client_errors.count(ClientError::Ambiguous);
        return Ok(error.answer(grpc));
    }
    if state.inbound.requests.count() > state.config.load().requests_max() {
        return Ok(OwnError::too_many().answer(grpc));
    }
    let passing = Passing::through(&mut request);
    Ok(match state.app.clone().send(request, Attempt::FIRST, None).await {
        Ok(mut response) => {
            passing.back(&mut response, &state.tunnels);
            response.map(|body| AnswerBody::Callee { body })
        }
        Err(error) => OwnError::from(&error).answer(grpc),
    })
}
