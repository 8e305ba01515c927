//! Which procedure a request asks for: a route template or a gRPC method, never a raw path.

use std::borrow::Cow;
use std::sync::Arc;

use http::{Extensions, HeaderMap, Method, Request, Uri};
use onus_agent::{Agent, MethodKind};

use crate::told::told;

/// The route template of a request, as an extension: of an inbound one where the router's own
/// template cannot be seen, of an outbound one where the callee's should be told apart.
///
/// ```
/// let request = http::Request::get("/pay/17").extension(onus::Procedure::route("/pay/{id}"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Procedure(Template);

#[derive(Clone, Debug)]
enum Template {
    Own(Cow<'static, str>),
    Shared(Arc<str>),
}

impl Procedure {
    /// The route with this template. Raw paths would make one procedure of each id.
    #[must_use]
    pub fn route(template: impl Into<Cow<'static, str>>) -> Self {
        Self(Template::Own(template.into()))
    }

    /// The route with a template that is told for many requests; its clones share the text.
    #[must_use]
    pub fn shared(template: impl Into<Arc<str>>) -> Self {
        Self(Template::Shared(template.into()))
    }

    /// The template.
    #[must_use]
    pub fn template(&self) -> &str {
        self.0.as_str()
    }
}

impl Template {
    fn as_str(&self) -> &str {
        match self {
            Self::Own(text) => text,
            Self::Shared(text) => text,
        }
    }
}

impl PartialEq for Template {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Template {}

/// The head of a request, as functions see it that tell callees and procedures.
#[derive(Clone, Copy, Debug)]
pub struct RequestHead<'a> {
    /// The method.
    pub method: &'a Method,
    /// The target.
    pub uri: &'a Uri,
    /// The headers.
    pub headers: &'a HeaderMap,
    /// What other layers have noted on the request.
    pub extensions: &'a Extensions,
}

impl<'a> RequestHead<'a> {
    pub(crate) fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }
}

/// A function that tells the route template of a request.
pub(crate) type ProcedureFn = Arc<dyn Fn(&RequestHead<'_>) -> Option<Procedure> + Send + Sync>;

/// The procedure that `head`, of this `kind`, asks for: a gRPC method, else the HTTP method and the route template
/// that `tell`, the request's extension or the router knows, else the HTTP method alone.
pub(crate) fn of(
    agent: &Agent,
    head: &RequestHead<'_>,
    kind: MethodKind,
    tell: Option<&ProcedureFn>,
) -> onus_agent::Procedure {
    let symbols = agent.symbols();
    match kind {
        MethodKind::Grpc => return onus_agent::Procedure::grpc(symbols, head.uri.path()),
        MethodKind::Safe | MethodKind::Unsafe => {}
    }
    let told = tell.and_then(|tell| told(|| tell(head)).flatten());
    let route = told.as_ref().map(Procedure::template).or_else(|| route(head.extensions));
    onus_agent::Procedure::http(symbols, head.method, route)
}

fn route(extensions: &Extensions) -> Option<&str> {
    if let Some(procedure) = extensions.get::<Procedure>() {
        return Some(procedure.template());
    }
    #[cfg(feature = "axum")]
    if let Some(path) = extensions.get::<axum::extract::MatchedPath>() {
        return Some(path.as_str());
    }
    None
}
