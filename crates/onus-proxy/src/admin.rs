//! The admin interface: health, metrics, edges, and switches.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, ORIGIN};
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use onus::prometheus_client::encoding::text::encode;
use onus::prometheus_client::registry::Registry;
use onus::report::{AdminService, Reporter};
use onus::{EdgeView, Source, Switches};
use serde::Serialize;
use tower_service::Service as _;

use crate::listener::Front;
use crate::metrics::Families;
use crate::proxy::State;
use crate::tail::{Filter, Lines, READERS_MAX};

/// The admin interface.
#[derive(Clone)]
pub(crate) struct Admin {
    state: Arc<State>,
    registry: Arc<Registry>,
    /// What every process with Onus answers to operators.
    service: AdminService,
    /// Whether the client is on this machine.
    is_local: bool,
}

type Answer = Response<AdminBody>;

/// The body of an answer.
pub(crate) enum AdminBody {
    /// A document, until it is sent.
    Whole(Option<Bytes>),
    /// The access log while it happens.
    Lines(Box<Lines>),
}

impl Admin {
    pub(crate) fn new(state: &Arc<State>, reporter: Option<&Reporter>) -> Self {
        let mut registry = Registry::default();
        state.onus.register_metrics(&mut registry);
        if let Some(reporter) = reporter {
            reporter.register_metrics(&mut registry);
        }
        registry.register_collector(Box::new(Families(state.clone())));
        // Who may switch is asked before a request gets there.
        let service = state.onus.admin().without_token();
        Self { state: state.clone(), registry: Arc::new(registry), service, is_local: false }
    }

    fn metrics(&self) -> Answer {
        let mut text = String::new();
        match encode(&mut text, &self.registry) {
            Ok(()) => answer(StatusCode::OK, OPENMETRICS, text),
            Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
        }
    }

    fn ready(&self) -> Answer {
        if self.state.is_ready() {
            answer(StatusCode::OK, TEXT, "ready\n".to_owned())
        } else {
            problem(StatusCode::SERVICE_UNAVAILABLE, "the proxy is draining")
        }
    }

    fn edges(&self) -> Answer {
        let edges: Vec<_> = self.state.onus.edges().into_iter().map(Edge::from).collect();
        json(&Edges { service: self.state.onus.agent().service(), edges })
    }

    fn tail(&self, query: &str) -> Answer {
        let filter = match Filter::parse(query) {
            Ok(filter) => filter,
            Err(detail) => return problem(StatusCode::BAD_REQUEST, &detail),
        };
        let Some(lines) = self.state.log.follow(filter) else {
            let detail = format!("{READERS_MAX} read the access log already");
            return problem(StatusCode::SERVICE_UNAVAILABLE, &detail);
        };
        let mut answer = Response::new(AdminBody::Lines(Box::new(lines)));
        answer.headers_mut().insert(CONTENT_TYPE, LINES);
        answer
    }

    /// Begins to end, as before a signal that comes only when the application has ended.
    fn drain(&self, request: &Request<Incoming>) -> Answer {
        // What a page in somebody's browser sends to this port has this field.
        if request.headers().contains_key(ORIGIN) {
            return problem(StatusCode::FORBIDDEN, "a page in a browser begins no drain");
        }
        self.state.end();
        let mut answer = json(&Drains { ready: self.state.is_ready() });
        *answer.status_mut() = StatusCode::ACCEPTED;
        answer
    }

    /// Whether the client may change anything.
    fn may_switch(&self, request: &Request<Incoming>) -> bool {
        let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
        let config = self.state.config.load();
        // It is read each time, so that another token needs no restart; switches are thrown seldom.
        let token = config.token_file().and_then(|path| std::fs::read_to_string(path).ok());
        self.is_local
            || given
                .zip(token)
                .is_some_and(|(given, token)| is_same(given, token.trim().as_bytes()))
    }

    async fn switch(&self, request: Request<Incoming>) -> Answer {
        // A page in somebody's browser can send text to this port, but not text of this type.
        if request.headers().get(CONTENT_TYPE).is_none_or(|kind| kind != SWITCHES) {
            let says = "a switch text has the content type application/yaml";
            return problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, says);
        }
        let Some(text) = read(request.into_body()).await else {
            return problem(StatusCode::BAD_REQUEST, "a switch text has a few lines");
        };
        match Switches::parse(&text) {
            Ok(switches) => {
                self.state.onus.switch(Source::Admin, &switches);
                answer(StatusCode::OK, TEXT, format!("mode {}\n", self.state.onus.mode().as_str()))
            }
            Err(error) => problem(StatusCode::BAD_REQUEST, &error.to_string()),
        }
    }
}

/// What there is, for whoever has come to the wrong place.
const PLACES: &str = "/metrics, /livez, /readyz, /version, /openapi.json, and /api/v1/edges, now, \
                      orders, tail, switch, switches and drain";

impl Front for Admin {
    type Body = AdminBody;

    fn of(&self, client: SocketAddr, _: bool) -> Self {
        Self { is_local: client.ip().to_canonical().is_loopback(), ..self.clone() }
    }

    async fn answer(self, request: Request<Incoming>) -> Result<Answer, Infallible> {
        let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
        if !is_get && !self.may_switch(&request) {
            let says = "from another machine it takes the token in admin.token-file";
            return Ok(problem(StatusCode::FORBIDDEN, says));
        }
        Ok(match request.uri().path() {
            "/api/v1/now" | "/api/v1/orders" | "/api/v1/switch" | "/openapi.json" => {
                whole(self.service.clone().call(request).await?).await
            }
            "/api/v1/switches" if *request.method() == Method::POST => self.switch(request).await,
            "/api/v1/drain" if *request.method() == Method::POST => self.drain(&request),
            "/livez" if is_get => answer(StatusCode::OK, TEXT, "alive\n".to_owned()),
            "/readyz" if is_get => self.ready(),
            "/metrics" if is_get => self.metrics(),
            "/api/v1/edges" if is_get => self.edges(),
            "/api/v1/tail" if *request.method() == Method::GET => {
                self.tail(request.uri().query().unwrap_or_default())
            }
            "/version" if is_get => json(&Version { version: env!("CARGO_PKG_VERSION") }),
            "/api/v1/switches" | "/api/v1/drain" => {
                problem(StatusCode::METHOD_NOT_ALLOWED, "allowed is POST")
            }
            "/livez" | "/readyz" | "/metrics" | "/api/v1/edges" | "/api/v1/tail" | "/version" => {
                problem(StatusCode::METHOD_NOT_ALLOWED, "allowed is GET")
            }
            path => {
                problem(StatusCode::NOT_FOUND, &format!("nothing is at {path}; there are {PLACES}"))
            }
        })
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Lines(lines) => Pin::new(lines).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(text) => text.is_none(),
            Self::Lines(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Lines(_) => SizeHint::default(),
        }
    }
}

#[derive(Serialize)]
struct Edges<'a> {
    service: &'a str,
    edges: Vec<Edge>,
}

/// An edge as it is told.
#[derive(Serialize)]
struct Edge {
    caller_method: String,
    callee: String,
    callee_method: String,
    class: &'static str,
    class_by: &'static str,
    explained: String,
    attempts: u32,
    budget_tokens: Option<u64>,
    ok: u64,
    failed: u64,
    abandoned: u64,
    retries: u64,
    suppressed: u64,
    untied: u64,
}

impl From<EdgeView> for Edge {
    fn from(view: EdgeView) -> Self {
        Self {
            caller_method: view.caller_method,
            callee: view.callee,
            callee_method: view.callee_method,
            class: view.class,
            class_by: view.class_by,
            explained: view.explained,
            attempts: view.attempts,
            budget_tokens: view.budget_tokens,
            ok: view.ok,
            failed: view.failed,
            abandoned: view.abandoned,
            retries: view.retries,
            suppressed: view.suppressed,
            untied: view.untied,
        }
    }
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
}

#[derive(Serialize)]
struct Drains {
    ready: bool,
}

/// RFC 9457.
#[derive(Serialize)]
struct Problem<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
}

fn answer(status: StatusCode, kind: HeaderValue, text: String) -> Answer {
    let mut answer = Response::new(AdminBody::Whole(Some(text.into())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or_default();
    let problem = Problem { title, status: status.as_u16(), detail };
    // Text and numbers are always JSON.
    let text = serde_json::to_string(&problem).unwrap_or_default();
    answer(status, PROBLEM, text)
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_string(value) {
        Ok(text) => answer(StatusCode::OK, JSON, text),
        Err(error) => problem(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// An answer of which all is there, as one of this interface.
async fn whole(answer: Response<impl Body<Data = Bytes>>) -> Answer {
    let (head, body) = answer.into_parts();
    let mut body = pin!(body);
    let frame = poll_fn(|cx| body.as_mut().poll_frame(cx)).await;
    let text = frame.and_then(|frame| frame.ok()?.into_data().ok());
    Response::from_parts(head, AdminBody::Whole(text))
}

/// Compares in a time that says nothing of where two texts differ.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differ = given.iter().zip(token).fold(0, |all, (one, other)| all | (one ^ other));
    !token.is_empty() && given.len() == token.len() && differ == 0
}

/// A short text; `None` where it is long, breaks or is none.
async fn read(mut body: Incoming) -> Option<String> {
    let mut text = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let data: Bytes = frame.ok()?.into_data().ok()?;
        text.extend_from_slice(&data);
        if text.len() > TEXT_MAX {
            return None;
        }
    }
    String::from_utf8(text).ok()
}

/// A switch text has a few lines.
const TEXT_MAX: usize = 4096;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const LINES: HeaderValue = HeaderValue::from_static("application/x-ndjson");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
const SWITCHES: &str = "application/yaml";
const OPENMETRICS: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
