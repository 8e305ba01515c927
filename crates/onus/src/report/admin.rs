//! What a service tells people of itself, and takes from them: for the first minute of an incident,
//! with the analysis down.
//!
//! A service to be mounted beside its own routes, on an address that only operators reach:
//!
//! ```no_run
//! # let onus = onus::Onus::builder("checkout").build().unwrap();
//! let admin = onus.admin().token("one-of-at-least-16-characters");
//! let routes: axum::Router = axum::Router::new().fallback_service(admin);
//! ```
//!
//! | | |
//! |---|---|
//! | `GET /livez`, `GET /version` | |
//! | `GET /openapi.json` | all of this for tools, as OpenAPI 3.1 |
//! | `GET /metrics` | the agent's metrics, as OpenMetrics |
//! | `GET /api/v1/now` | what the service sees: counts since its start, for `onus now --agents` |
//! | `GET /api/v1/orders` | what administrators have switched here and that holds |
//! | `POST /api/v1/switch` | throws a switch as an administrator: a mode, a shield, each with its end; what it does not name stays |

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::UNIX_EPOCH;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use onus_agent::Source;
use onus_api::{AGENT_OPENAPI, Orders, Problem, SCHEMA_VERSION, SwitchRequest};
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde::Serialize;
use tower_service::Service;

use super::ordered::Refused;
use super::snapshot;
use crate::onus::Onus;

/// The longest body that is read; a switch has a few lines.
const BODY_MAX: usize = 64 * 1024;
const TOKEN_MIN: usize = 16;

/// A service that tells of Onus and takes switches; see [`Onus::admin`].
#[derive(Clone)]
pub struct AdminService {
    onus: Onus,
    registry: Arc<Registry>,
    guard: Guard,
}

/// Who may throw switches.
#[derive(Clone, PartialEq, Eq)]
enum Guard {
    Nobody,
    Token(Arc<str>),
    Anybody,
}

impl Onus {
    /// A service for operators: `onus now --agents`, `onus shield --agents` and `onus off --agents`
    /// talk to it. It reads for everybody, and throws switches for nobody until a token is said.
    #[must_use]
    pub fn admin(&self) -> AdminService {
        let mut registry = Registry::default();
        self.register_metrics(&mut registry);
        AdminService { onus: self.clone(), registry: Arc::new(registry), guard: Guard::Nobody }
    }
}

impl AdminService {
    /// Lets whoever has this token throw switches. One of fewer than 16 characters lets in nobody.
    #[must_use]
    pub fn token(self, token: &str) -> Self {
        let guard = match token.len() {
            0..TOKEN_MIN => {
                tracing::warn!(
                    "onus: the admin token has fewer than {TOKEN_MIN} characters, and lets nobody in"
                );
                Guard::Nobody
            }
            _ => Guard::Token(token.into()),
        };
        Self { guard, ..self }
    }

    /// Lets everybody throw switches who reaches the service: for an address of loopback.
    #[must_use]
    pub fn without_token(self) -> Self {
        Self { guard: Guard::Anybody, ..self }
    }

    fn read(&self, path: &str) -> Response<Full<Bytes>> {
        match path {
            "/livez" => plain("alive\n"),
            "/version" => plain(concat!(env!("CARGO_PKG_VERSION"), "\n")),
            "/metrics" => {
                let mut page = String::new();
                match text::encode(&mut page, &self.registry) {
                    Ok(()) => answer(StatusCode::OK, OPEN_METRICS, page),
                    Err(fmt::Error) => {
                        problem(500, "scrape-failed", "the metrics cannot be written", "")
                    }
                }
            }
            "/api/v1/now" => json(&snapshot::of(&self.onus)),
            "/api/v1/orders" => json(&self.orders()),
            "/openapi.json" => answer(StatusCode::OK, "application/json", AGENT_OPENAPI),
            _ => problem(404, "not-found", "there is nothing here", "see /api/v1/now and /metrics"),
        }
    }

    fn switch(&self, body: &[u8]) -> Response<Full<Bytes>> {
        let asked: SwitchRequest = match serde_json::from_slice(body) {
            Ok(asked) => asked,
            Err(error) => {
                return problem(400, "bad-body", "the body cannot be read", &error.to_string());
            }
        };
        let (service, now) = (self.onus.agent().service().clone(), self.onus.clock().now());
        let taken = self.onus.ordered().take(&asked, &service, now, millis(&self.onus));
        match taken {
            Ok(()) => {
                follow_orders(&self.onus);
                json(&snapshot::of(&self.onus))
            }
            Err(Refused::OtherService(why)) => {
                problem(409, "other-service", "this process is of another service", &why)
            }
            Err(Refused::Order(why)) => {
                problem(422, "bad-order", "the order cannot be meant", &why)
            }
        }
    }

    fn orders(&self) -> Orders {
        let (service, now) = (self.onus.agent().service(), self.onus.clock().now());
        let mut ordered = self.onus.ordered();
        ordered.switches(now);
        Orders {
            schema_version: SCHEMA_VERSION,
            orders: ordered.list(service, now, millis(&self.onus)),
            ..Orders::default()
        }
    }

    /// Why whoever asks may not throw switches.
    fn refusal(&self, authorization: Option<&HeaderValue>) -> Option<Response<Full<Bytes>>> {
        let token = authorization.and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        match (&self.guard, token) {
            (Guard::Anybody, _) => None,
            (Guard::Token(own), Some(token)) if same(own.as_bytes(), token.trim().as_bytes()) => {
                None
            }
            (Guard::Token(_), _) => {
                let title = "it is not known who asks";
                let mut refusal =
                    problem(401, "unauthorized", title, "the token is missing or wrong");
                let bearer = HeaderValue::from_static("Bearer");
                refusal.headers_mut().insert(WWW_AUTHENTICATE, bearer);
                Some(refusal)
            }
            (Guard::Nobody, _) => {
                let detail = "this service has no admin token, and takes no switch";
                Some(problem(403, "forbidden", "this is not allowed", detail))
            }
        }
    }
}

impl<B> Service<Request<B>> for AdminService
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let admin = self.clone();
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let path = head.uri.path();
            Ok(match head.method {
                Method::GET => admin.read(path),
                Method::POST if path == "/api/v1/switch" => {
                    if let Some(refusal) = admin.refusal(head.headers.get(AUTHORIZATION)) {
                        return Ok(refusal);
                    }
                    // A page in somebody's browser can send text here, but not text of this type.
                    let kind = head.headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
                    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
                        let detail = "a switch has the content type application/json";
                        let title = "the content type is not allowed";
                        return Ok(problem(415, "bad-type", title, detail));
                    }
                    match Limited::new(body, BODY_MAX).collect().await {
                        Ok(body) => admin.switch(&body.to_bytes()),
                        Err(error) => {
                            problem(400, "bad-body", "the body cannot be read", &error.to_string())
                        }
                    }
                }
                _ => {
                    let detail = "GET reads, and POST /api/v1/switch switches";
                    problem(405, "method-not-allowed", "the method is not allowed", detail)
                }
            })
        })
    }
}

impl fmt::Debug for AdminService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdminService").field("onus", &self.onus).finish_non_exhaustive()
    }
}

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn plain(text: &'static str) -> Response<Full<Bytes>> {
    answer(StatusCode::OK, "text/plain; charset=utf-8", text)
}

fn json(document: &impl Serialize) -> Response<Full<Bytes>> {
    // Numbers and text: it cannot fail.
    let text = serde_json::to_vec(document).unwrap_or_default();
    answer(StatusCode::OK, "application/json", text)
}

fn problem(status: u16, slug: &str, title: &str, detail: &str) -> Response<Full<Bytes>> {
    let text = serde_json::to_vec(&Problem::new(status, slug, title, detail)).unwrap_or_default();
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer(status, Problem::MEDIA_TYPE, text)
}

fn answer(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut answer = Response::new(Full::new(text.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// Lets what administrators have said hold, and again when a part of it ends.
fn follow_orders(onus: &Onus) {
    let now = onus.clock().now();
    let mut ordered = onus.ordered();
    let switches = ordered.switches(now);
    onus.switch(Source::Admin, &switches);
    let weak = onus.downgrade();
    // Whoever serves requests elsewhere than on tokio has modes without an end, and shields, which
    // end by themselves.
    let runtime = tokio::runtime::Handle::try_current();
    let waiting = ordered.next_end().zip(runtime.ok()).map(|(end, runtime)| {
        let wait = end.saturating_since(now);
        let waiting = runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            if let Some(onus) = weak.upgrade() {
                follow_orders(&onus);
            }
        });
        waiting.abort_handle()
    });
    ordered.wait_by(waiting);
}

/// Compares in a time that tells only of the length.
fn same(one: &[u8], other: &[u8]) -> bool {
    let differs = one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other));
    one.len() == other.len() && differs == 0
}

/// The wall clock of a service, in milliseconds since 1970.
pub(crate) fn millis(onus: &Onus) -> u64 {
    let since = onus.clock().wall().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
