//! The configuration file as typed. Names are those of the builder of crate `onus`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analysis::AnalysisFile;
use super::one_or_many::OneOrMany;
use super::places::Places;
use super::words::{Errors, ModeWord, Size, Span};

/// The configuration of a proxy.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ConfigFile {
    /// The name of the service beside which the proxy runs, `namespace/name` where namespaces exist.
    pub service: String,
    /// How far ownership reaches: `off`, `observe`, `enforce`, or a share such as `enforce 25%`.
    #[serde(default)]
    pub mode: ModeWord,
    /// A file with mode and shield that is followed while the proxy runs.
    #[serde(default)]
    pub switch_file: Option<PathBuf>,
    /// Keeps an error claimed whose blamed calls met only silence.
    #[serde(default)]
    pub silent_claims: bool,
    /// A second header under which claims are read and written.
    #[serde(default)]
    pub claim_alias: Option<String>,
    /// Requests of others to the application.
    #[serde(default)]
    pub inbound: InboundFile,
    /// Calls of the application to others.
    #[serde(default)]
    pub outbound: OutboundFile,
    /// Bounds of listeners and connections.
    #[serde(default)]
    pub limits: LimitsFile,
    /// How the proxy ends.
    #[serde(default)]
    pub drain: DrainFile,
    /// The admin interface.
    #[serde(default)]
    pub admin: AdminFile,
    /// The dependency analysis that is reported to; without it edges are learnt from the traffic of
    /// this proxy alone.
    #[serde(default)]
    pub analysis: Option<AnalysisFile>,
    /// The memory for request bodies that may have to be sent again.
    #[serde(default)]
    pub replay: ReplayFile,
    /// How calls of the application are tied to the requests that it serves.
    #[serde(default)]
    pub correlation: CorrelationFile,
    /// Who is called, by the name of the service.
    #[serde(default)]
    pub callees: BTreeMap<String, CalleeFile>,
    /// Threads that serve; one is enough for most sidecars.
    #[serde(default = "one")]
    pub workers: usize,
    /// Where they come from.
    #[serde(skip)]
    #[schemars(skip)]
    pub(super) places: Places,
}

/// Requests of others to the application.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct InboundFile {
    /// Where requests are accepted; port 0 is any free one.
    pub listen: SocketAddr,
    /// Where the application listens.
    pub app: String,
    /// How the application is spoken to: as requests come, or always `http1` or `http2`.
    pub protocol: ProtocolWord,
    /// The certificate that the proxy shows to callers; without this, they connect in the clear.
    pub tls: Option<InboundTlsFile>,
    /// Route templates of the application, such as `/pay/{id}`; without them, the HTTP method alone
    /// tells procedures apart.
    pub routes: Vec<String>,
    /// Whether callers are outside of the trust boundary: nothing that they say of ownership is
    /// read, and they get no claim.
    pub untrusted_callers: bool,
    /// What requests are told of the way that they came.
    pub forwarding: ForwardingFile,
}

impl Default for InboundFile {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 7460)),
            app: "127.0.0.1:8080".to_owned(),
            protocol: ProtocolWord::default(),
            tls: None,
            routes: Vec::new(),
            untrusted_callers: false,
            forwarding: ForwardingFile::default(),
        }
    }
}

/// What requests are told of the way that they came; nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ForwardingFile {
    /// Writes `Via`, and refuses requests that have been here before.
    pub via: bool,
    /// Writes `Forwarded`.
    pub forwarded: bool,
    /// Writes `X-Forwarded-For`, `-Proto` and `-Host`.
    pub x_forwarded: bool,
    /// Networks such as `10.0.0.0/8` of clients whose own `Forwarded` and `X-Forwarded-…` stay and
    /// are added to; those of others are taken out where this proxy writes any.
    pub trusted: Vec<String>,
}

/// Calls of the application to others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct OutboundFile {
    /// Where calls to all callees are accepted; port 0 is any free one.
    pub listen: SocketAddr,
    /// What calls are told of the way that they came.
    pub forwarding: ForwardingFile,
}

impl Default for OutboundFile {
    fn default() -> Self {
        let forwarding = ForwardingFile::default();
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 7461)), forwarding }
    }
}

/// How calls of the application are tied to the requests that it serves.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct CorrelationFile {
    /// Headers that the application hands on, in case it does not hand `tracestate` on.
    pub ids: Vec<String>,
}

impl Default for CorrelationFile {
    fn default() -> Self {
        Self { ids: vec!["x-request-id".to_owned()] }
    }
}

/// Bounds of listeners and connections.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct LimitsFile {
    /// Connections of clients to a listener; others are closed at once.
    pub connections: usize,
    /// Requests to the application at a time; others are answered 503.
    pub requests: usize,
    /// Header fields of a request; more are answered 431.
    pub headers: usize,
    /// The size of a request's head; a larger one is answered 431.
    pub header_size: Size,
    /// How long the head of a request may take once something of it came.
    pub header_timeout: Span,
    /// How long a client's connection may be without a request.
    pub idle_timeout: Span,
    /// Requests of a client's HTTP/2 connection at a time.
    pub streams: u32,
    /// Streams that a client may reset before anybody has looked at them.
    pub resets: usize,
    /// Frames of a client's HTTP/2 connection that carry nothing, in half of `header-timeout`, beside
    /// those that others pay for; more end the connection.
    pub idle_frames: u32,
    /// HTTP/1.1 connections to an instance.
    pub callee_connections: usize,
    /// HTTP/2 connections to an instance.
    pub callee_http2_connections: usize,
    /// Requests on one HTTP/2 connection to an instance, if that allows as many.
    pub callee_streams: usize,
    /// Requests that wait for a connection to an instance; others are answered 503.
    pub callee_pending: usize,
    /// How long a connection to an instance may take to be made, or to be waited for, and how long
    /// the resolver may take to say where the instances are.
    pub connect_timeout: Span,
    /// How long an unused connection to an instance stays open, about.
    pub callee_idle_timeout: Span,
}

impl Default for LimitsFile {
    fn default() -> Self {
        Self {
            connections: 10_000,
            requests: 10_000,
            headers: 100,
            header_size: Size(64 << 10),
            header_timeout: seconds(10),
            idle_timeout: seconds(300),
            streams: 256,
            resets: 64,
            idle_frames: 1_000,
            callee_connections: 1_024,
            callee_http2_connections: 4,
            callee_streams: 100,
            callee_pending: 1_024,
            connect_timeout: seconds(2),
            callee_idle_timeout: seconds(30),
        }
    }
}

/// How the proxy ends.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct DrainFile {
    /// How long it goes on as before when it has been told to end, but says that it is not ready.
    pub delay: Span,
    /// How long a connection of HTTP/1.1 that has no request is kept after that. Its client cannot be
    /// told that it ends but by an answer: a request that comes meanwhile is answered, and told so.
    pub idle: Span,
    /// The longest that requests under way, and an application that still calls others, are waited
    /// for.
    pub limit: Span,
}

impl Default for DrainFile {
    fn default() -> Self {
        Self { delay: seconds(0), idle: seconds(1), limit: seconds(25) }
    }
}

/// The admin interface.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct AdminFile {
    /// Where it listens.
    pub listen: SocketAddr,
    /// A file with the token that switches modes from another machine; from this one none is needed,
    /// and without this none is enough.
    pub token_file: Option<PathBuf>,
}

impl Default for AdminFile {
    fn default() -> Self {
        Self { listen: SocketAddr::from(([127, 0, 0, 1], 7470)), token_file: None }
    }
}

/// The memory for request bodies that may have to be sent again.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct ReplayFile {
    /// The most that is kept of one body; a larger one is sent as it comes, and not again.
    pub per_request: Size,
    /// The most that is kept of all bodies together.
    pub total: Size,
}

impl Default for ReplayFile {
    fn default() -> Self {
        Self { per_request: Size(64 << 10), total: Size(64 << 20) }
    }
}

/// A callee.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CalleeFile {
    /// Where its instances are: a name with a port, or addresses.
    pub address: OneOrMany,
    /// Under which authorities the application calls it, beside its name and its address.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// A listener for calls to this callee alone.
    #[serde(default)]
    pub listen: Option<SocketAddr>,
    /// Its route templates, such as `/rate/{id}`.
    #[serde(default)]
    pub routes: Vec<String>,
    /// How it is spoken to: as calls come, or always `http1` or `http2`.
    #[serde(default)]
    pub protocol: ProtocolWord,
    /// Whose certificate is asked for; without this, the connection is in the clear.
    #[serde(default)]
    pub tls: Option<CalleeTlsFile>,
    /// The retries that the proxy makes; none without this.
    #[serde(default)]
    pub retry: Option<RetryFile>,
    /// The retries of single procedures, instead of those above: `POST`, `POST /charge`, or
    /// `/pkg.Service/Method`. Naming an unsafe method allows it.
    #[serde(default)]
    pub procedures: BTreeMap<String, RetryFile>,
    /// Retries that others make on the way to this callee.
    #[serde(default)]
    pub retries: Option<DeclaredFile>,
    /// Which answers are failures, instead of the protocol's.
    #[serde(default)]
    pub failures: Option<Errors>,
    /// Whether the service can answer without it: `required` or `optional`.
    #[serde(default)]
    pub annotation: Option<AnnotationWord>,
    /// The operator's word on the class of all edges to it.
    #[serde(default)]
    pub override_class: Option<ClassWord>,
    /// Whether it is outside of the trust boundary.
    #[serde(default)]
    pub untrusted: bool,
    /// Lets the brake halve the enforce share where probes show that suppression is costly.
    #[serde(default)]
    pub brake_acts: bool,
}

/// What the proxy shows to callers, in files of PEM that are read anew when they change.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct InboundTlsFile {
    /// The certificate, with those that vouch for it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Who vouches for callers; without this, callers need no certificate.
    #[serde(default)]
    pub client_ca: Option<PathBuf>,
}

/// Whose certificate is asked for, in files of PEM that are read anew when they change.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CalleeTlsFile {
    /// Who vouches for the callee.
    pub ca: PathBuf,
    /// The name in its certificate, if that is not the name in `address`.
    #[serde(default)]
    pub server_name: Option<String>,
    /// The certificate that is shown to the callee, with those that vouch for it.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(default)]
    pub key: Option<PathBuf>,
}

/// Retries that the proxy makes.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RetryFile {
    /// The most attempts of a call, the first included: 1 to 10.
    pub attempts: u32,
    /// The retry budget; without this, half of the calls that ended ok and one a second.
    #[serde(default)]
    pub budget: Option<BudgetFile>,
    /// Every failed call may be retried; not beside `budget`.
    #[serde(default)]
    pub no_budget: bool,
    /// The errors to retry; all that the protocol calls failures without this.
    #[serde(default)]
    pub errors: Option<Errors>,
    /// Retries unsafe HTTP methods too.
    #[serde(default)]
    pub unsafe_methods: bool,
    /// The wait before the first retry, at most.
    #[serde(default)]
    pub backoff_base: Option<Span>,
    /// The wait before any retry, at most.
    #[serde(default)]
    pub backoff_max: Option<Span>,
    /// Makes as many retries where few of them succeed; without this they get fewer.
    #[serde(default)]
    pub no_gate: bool,
    /// Makes none of the suppressed retries, not even to measure what suppression costs.
    #[serde(default)]
    pub no_probes: bool,
    /// The time that an attempt is assumed to need.
    #[serde(default)]
    pub min_attempt_time: Option<Span>,
    /// The longest that one attempt may take until its response head.
    #[serde(default)]
    pub per_try_timeout: Option<Span>,
    /// The longest that all attempts together may take until a response head.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Allows this beside `retries` that others make.
    #[serde(default)]
    pub stacked: bool,
}

/// A retry budget.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct BudgetFile {
    /// Retries per hundred calls that fill it.
    #[serde(default)]
    pub percent: Option<u32>,
    /// All calls fill it, and not only those that ended ok.
    #[serde(default)]
    pub from_calls: bool,
    /// Retries per second whatever the traffic, while calls succeed.
    #[serde(default)]
    pub min_per_second: Option<u32>,
    /// How long a call counts.
    #[serde(default)]
    pub ttl: Option<Span>,
}

/// Retries that others make.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct DeclaredFile {
    /// Who makes them.
    pub made_by: MadeBy,
    /// As a known layer makes them where nobody says otherwise.
    #[serde(default)]
    pub like: Option<Like>,
    /// The most attempts, the first included: 2 to 100.
    #[serde(default)]
    pub attempts: Option<u32>,
    /// The errors that are retried.
    #[serde(default)]
    pub errors: Option<Errors>,
}

/// Who makes retries that the proxy does not make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MadeBy {
    /// A layer between the proxy and the callee.
    Below,
}

/// A known retry layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Like {
    /// Istio where nobody configured it: two retries of connect failures, refused streams, and the
    /// gRPC codes CANCELLED and UNAVAILABLE; 503 as well.
    IstioDefault,
}

/// How somebody is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ProtocolWord {
    /// As the request came.
    #[default]
    AsReceived,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2, without asking first.
    Http2,
}

/// Whether the service can answer without a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AnnotationWord {
    /// It cannot.
    Required,
    /// It can.
    Optional,
}

/// The class of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ClassWord {
    /// Its failures fail the caller.
    FailClose,
    /// They do not.
    FailOpen,
    /// Nobody knows.
    Unknown,
}

fn one() -> usize {
    1
}

pub(super) fn seconds(seconds: u64) -> Span {
    Span(Duration::from_secs(seconds))
}
