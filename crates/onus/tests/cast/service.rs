//! A service under the inbound layer, with its client under the outbound layer.

use std::convert::Infallible;
use std::pin::Pin;

use http::{HeaderMap, Request, Response};
use onus::inbound::InboundBody;
use onus::{CallOutcome, InboundService, Onus, OutboundService};
use tower::util::ServiceFn;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::body::{Broken, Pieces};
use super::callee::Callee;

pub(crate) type Client = OutboundService<Callee>;

/// A service under the inbound layer.
pub(crate) type Node = InboundService<ServiceFn<Handler>>;

/// What a service answers.
pub(crate) type Served = Response<InboundBody<Pieces>>;

pub(crate) type Handler = Box<dyn Fn(Request<Pieces>) -> Handled + Send + Sync>;

type Handled = Pin<Box<dyn Future<Output = Result<Response<Pieces>, Infallible>> + Send>>;

/// A service that answers with what `handler` makes.
pub(crate) fn serve<H, F>(onus: &Onus, handler: H) -> Node
where
    H: Fn(Request<Pieces>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Pieces>> + Send + 'static,
{
    let handler: Handler = Box::new(move |request| {
        let answer = handler(request);
        Box::pin(async move { Ok(answer.await) })
    });
    onus.inbound().layer(service_fn(handler))
}

/// Serves one request.
pub(crate) async fn ask(node: &mut Node, request: Request<Pieces>) -> Served {
    match node.ready().await.unwrap().call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// Makes one call and passes on all that comes back; no answer becomes a 502.
pub(crate) async fn relay(client: Client, request: Request<Pieces>) -> Response<Pieces> {
    match client.oneshot(request).await {
        Ok(response) => {
            let (head, _) = response.into_parts();
            Response::from_parts(head, Pieces::empty())
        }
        Err(Broken(_)) => {
            let mut response = Response::new(Pieces::empty());
            *response.status_mut() = http::StatusCode::BAD_GATEWAY;
            response
        }
    }
}

pub(crate) fn get(path: &str) -> Request<Pieces> {
    Request::get(path).body(Pieces::empty()).unwrap()
}

pub(crate) fn post(path: &str, body: Pieces) -> Request<Pieces> {
    Request::post(path).body(body).unwrap()
}

/// The claim in a header block, without its diagnostics: "unclaimed exhausted", "nothing".
pub(crate) fn said(headers: &HeaderMap) -> String {
    let lines: Vec<_> = headers.get_all("onus-claim").iter().collect();
    let [line] = lines[..] else {
        assert!(lines.is_empty(), "a claim is written once");
        return "nothing".to_owned();
    };
    let mut parts = line.to_str().unwrap().split(';').map(str::trim);
    let mut text = parts.next().unwrap().to_owned();
    for part in parts {
        if let Some(value) = ["kind=", "reason="].iter().find_map(|name| part.strip_prefix(name)) {
            text = format!("{text} {value}");
        }
    }
    text
}

/// How the call failed, as the layer tells the application.
pub(crate) fn outcome<B>(response: &Response<B>) -> Option<&CallOutcome> {
    response.extensions().get()
}
