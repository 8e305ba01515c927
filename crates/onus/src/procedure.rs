//! Which procedure a request asks for: a route template or a gRPC method, never a raw path.

use std::borrow::Cow;
use std::sync::Arc;

use http::request::Parts;
use onus_agent::Agent;
use onus_agent::classify::is_grpc;

/// The route template of a request, as an extension: of an inbound one where the router's own
/// template cannot be seen, of an outbound one where the callee's should be told apart.
///
/// ```
/// let request = http::Request::get("/pay/17").extension(onus::Procedure::route("/pay/{id}"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedure(Cow<'static, str>);

impl Procedure {
    /// The route with this template. Raw paths would make one procedure of each id.
    #[must_use]
    pub fn route(template: impl Into<Cow<'static, str>>) -> Self {
        Self(template.into())
    }

    /// The template.
    #[must_use]
    pub fn template(&self) -> &str {
        &self.0
    }
}

/// A function that tells the route template of a request.
pub(crate) type ProcedureFn = Arc<dyn Fn(&Parts) -> Option<Procedure> + Send + Sync>;

/// The procedure that `head` asks for: a gRPC method, else the HTTP method and the route template
/// that `tell`, the request's extension or the router knows, else the HTTP method alone.
pub(crate) fn of(agent: &Agent, head: &Parts, tell: Option<&ProcedureFn>) -> onus_agent::Procedure {
    let symbols = agent.symbols();
    if is_grpc(&head.headers) {
        return onus_agent::Procedure::grpc(symbols, head.uri.path());
    }
    let told = tell.and_then(|tell| tell(head));
    let route = told.as_ref().map(Procedure::template).or_else(|| route(head));
    onus_agent::Procedure::http(symbols, &head.method, route)
}

fn route(head: &Parts) -> Option<&str> {
    if let Some(procedure) = head.extensions.get::<Procedure>() {
        return Some(procedure.template());
    }
    #[cfg(feature = "axum")]
    if let Some(path) = head.extensions.get::<axum::extract::MatchedPath>() {
        return Some(path.as_str());
    }
    None
}
