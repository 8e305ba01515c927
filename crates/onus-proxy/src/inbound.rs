//! Requests of others to the application beside the proxy.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use hyper::body::Incoming;
use onus::inbound::InboundBody;
use onus::{Correlation, InboundService, Onus};
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{AnswerBody, OwnError, is_grpc};
use crate::listener::Front;
use crate::passing::Passing;
use crate::pool::{Pool, PoolBody};
use crate::request::refuse_ambiguous;

/// The inbound side: the inbound layer around the application.
#[derive(Clone)]
pub(crate) struct Inbound(InboundService<Application>);

impl Inbound {
    /// Requests go to the application that `pool` connects to.
    pub(crate) fn new(onus: &Onus, correlation: Correlation, pool: Pool<Incoming>) -> Self {
        Self(onus.inbound().across(correlation).layer(Application(pool)))
    }
}

impl Front for Inbound {
    type Body = InboundBody<AnswerBody<PoolBody<Incoming>>>;

    async fn answer(mut self, request: Request<Incoming>) -> Response<Self::Body> {
        match self.0.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// The application: where it cannot be reached, that is an error of this service too.
#[derive(Clone)]
struct Application(Pool<Incoming>);

impl Service<Request<Incoming>> for Application {
    type Response = Response<AnswerBody<PoolBody<Incoming>>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        // Boxed, because the futures of hyper's connections have no name.
        Box::pin(ask(self.0.clone(), request))
    }
}

async fn ask(
    pool: Pool<Incoming>,
    mut request: Request<Incoming>,
) -> Result<Response<AnswerBody<PoolBody<Incoming>>>, Infallible> {
    let grpc = is_grpc(request.headers());
    if let Err(error) = refuse_ambiguous(&request) {
        return Ok(error.answer(grpc));
    }
    let passing = Passing::through(&mut request);
    Ok(match pool.send(request, None).await {
        Ok(response) => passing.back(response).map(|body| AnswerBody::Callee { body }),
        Err(error) => OwnError::from(&error).answer(grpc),
    })
}
