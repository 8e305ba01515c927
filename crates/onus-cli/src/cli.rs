//! All that can be typed.

mod analysis;

use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use onus_demo::{Demo, Node, Protocol};
use onus_sim::model::{Rules, SLICES};

pub(crate) use self::analysis::*;

/// Stops retry storms between services by error ownership.
#[derive(Debug, Parser)]
#[command(name = "onus", version, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Config(ConfigOptions),
    Demo(DemoOptions),
    Model(ModelOptions),
    Simulate(SimulateOptions),
    Traces(Box<TracesOptions>),
    Audit(AuditOptions),
    Analysis(AnalysisOptions),
    Edges(EdgesOptions),
    Explain(ExplainOptions),
    Now(NowOptions),
    Off(OffOptions),
    Shield(ShieldOptions),
    Top(TopOptions),
    Radius(RadiusOptions),
    Graph(GraphOptions),
    Report(ReportOptions),
    Check(CheckOptions),
    Proxy(ProxyOptions),
}

/// Show a retry storm, and ownership stopping it, on real HTTP or gRPC traffic
///
/// Seven services A to G call each other in a chain on loopback, one of them fails, and a client
/// sends requests to A. The same traffic runs under five retry policies; the table shows how many
/// requests each service has handled, and below it what the formulas of the protocol expect.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: what if C loses the context of its requests?\n\n    \
                             onus demo --requests 200 --context-loss C")]
pub(crate) struct DemoOptions {
    /// Requests that the client sends to A under each policy, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = Demo::default().requests)]
    pub(crate) requests: u64,

    /// The service that fails
    #[arg(long, value_name = "NODE", default_value_t = Demo::default().fail)]
    pub(crate) fail: Node,

    /// The share of its requests that this service fails, 0 to 1
    #[arg(long, value_name = "P", default_value_t = Demo::default().failure_rate)]
    pub(crate) failure_rate: f64,

    /// Fail only the requests with a bad key, which are this percentage of all, 1 to 100; a second
    /// table shows them
    #[arg(long, value_name = "PERCENT")]
    pub(crate) bad_keys: Option<u32>,

    /// The service that fails never answers instead, and every service above it times out first
    #[arg(long)]
    pub(crate) hang: bool,

    /// A service whose calls cannot be tied to the request that it serves
    #[arg(long, value_name = "NODE")]
    pub(crate) context_loss: Option<Node>,

    /// A service that does not retry its calls
    #[arg(long, value_name = "NODE")]
    pub(crate) no_retries: Option<Node>,

    /// A service without Onus: it sends no claims and retries its calls blindly
    #[arg(long, value_name = "NODE")]
    pub(crate) no_claims: Option<Node>,

    /// A service with an operator's shield: it tells its callers to retry nothing
    #[arg(long, value_name = "NODE")]
    pub(crate) shield: Option<Node>,

    /// Ownership only observes: claims are sent and read, and stop no retry
    #[arg(long)]
    pub(crate) observe: bool,

    /// Show what the memory of an embedded analysis changes instead: errors of a service beside
    /// failures that it survives, the radius of the chain, and the report of the incident
    #[arg(long, conflicts_with_all = ["fail", "failure_rate", "bad_keys", "hang", "context_loss", "no_retries", "no_claims", "shield", "observe"])]
    pub(crate) analysis: bool,

    /// Services that know nothing of Onus, with a sidecar process beside each
    #[arg(long, conflicts_with = "analysis")]
    pub(crate) sidecar: bool,

    /// How the services talk
    #[arg(long, value_name = "PROTOCOL", value_enum, default_value_t = Wire::Http1)]
    pub(crate) protocol: Wire,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

impl DemoOptions {
    pub(crate) fn demo(&self) -> Demo {
        Demo {
            requests: self.requests,
            fail: self.fail,
            failure_rate: self.failure_rate,
            bad_keys: self.bad_keys,
            context_loss: self.context_loss,
            no_retries: self.no_retries,
            no_claims: self.no_claims,
            shield: self.shield,
            hang: self.hang,
            observe: self.observe,
            protocol: self.protocol.into(),
            ..Demo::default()
        }
    }
}

/// How the services talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wire {
    /// HTTP/1.1
    Http1,
    /// HTTP/2 without TLS
    Http2,
    /// gRPC, with claims in the block of its status
    Grpc,
}

impl From<Wire> for Protocol {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Http1 => Self::Http1,
            Wire::Http2 => Self::Http2,
            Wire::Grpc => Self::Grpc,
        }
    }
}

/// Check the bounds of the protocol on every small call tree
///
/// Runs the shipped decisions on all ordered call trees, in named slices of their configurations.
/// An adversary chooses anew for every attempt whether a service fails, an answer is lost or a call
/// is given up. A trace that breaks a property is printed as text and as a Mermaid diagram, with an
/// id that runs it again.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example: why does a denied budget not leave the retry to the caller?\n\n    \
                             onus model --nodes 4 --rules denied-not-met"
)]
pub(crate) struct ModelOptions {
    /// The largest call trees
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(2..=6))]
    pub(crate) nodes: u8,

    /// Check this slice only; may be given several times
    #[arg(long, value_name = "SLICE", value_parser = slices())]
    pub(crate) slice: Vec<String>,

    /// The rules; all but the shipped ones were rejected, and break properties
    #[arg(long, value_name = "RULES", default_value = Rules::Shipped.as_str(),
          value_parser = rules())]
    pub(crate) rules: String,

    /// Check the services and edges of this file instead; docs/model.md has an example
    #[arg(long, value_name = "FILE", conflicts_with_all = ["slice", "rules", "nodes"])]
    pub(crate) config: Option<PathBuf>,

    /// Run one trace again, and print it
    #[arg(long, value_name = "ID", conflicts_with_all = ["slice", "rules", "nodes"])]
    pub(crate) rerun: Option<String>,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

fn slices() -> PossibleValuesParser {
    SLICES.map(|slice| PossibleValue::new(slice.name).help(slice.words)).into()
}

fn rules() -> PossibleValuesParser {
    Rules::ALL.map(|rules| PossibleValue::new(rules.as_str()).help(rules.words())).into()
}

/// Show what retry policies do to a graph of services under an outage
///
/// Plays a scenario: services with workers, queues and timeouts, who calls whom, what goes wrong,
/// and the policies to compare. The decisions of Onus are those of the library, not a model of
/// them. The same scenario prints the same figures.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: how does the budget change what overload does?\n\n    \
                             onus simulate overload --sweep percent=5,10,20 --seeds 5")]
pub(crate) struct SimulateOptions {
    /// A scenario in YAML, or the name of a shipped one; without it the shipped ones are listed
    #[arg(value_name = "SCENARIO")]
    pub(crate) scenario: Option<String>,

    /// How often each policy is run, each time with other luck
    #[arg(long, value_name = "N")]
    pub(crate) seeds: Option<u32>,

    /// Run the scenario once for each value of a parameter: attempts, percent, floor, probability,
    /// bad-keys, rate, hops or instances
    #[arg(long, value_name = "PARAM=A,B,…")]
    pub(crate) sweep: Option<String>,

    /// Write charts (SVG) into this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) plot: Option<PathBuf>,

    /// Print closed forms below the simulated counts, as fractions, where there are some
    #[arg(long)]
    pub(crate) exact: bool,

    /// Runs at the same time; the figures do not depend on it
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<usize>,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    pub(crate) output: Format,
}

/// How the result of a simulation is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    Table,
    /// For tools
    Json,
    /// For spreadsheets
    Csv,
}

/// Check and explain configurations of the sidecar
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus config validate onus.yaml")]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file: nothing is printed if it can be used, else the line that cannot
    Validate {
        /// The configuration
        file: PathBuf,
    },
    /// Print a file with every default
    Show {
        /// The configuration
        file: PathBuf,
    },
    /// Print a file with every setting and what each is for
    Example,
    /// Print the JSON schema, for editors
    Schema,
}

/// Run the sidecar: error ownership for the service beside it, in any language
///
/// Requests come through its inbound listener to the application, calls of the application go
/// through its outbound listener to their callees.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus proxy --config onus.yaml")]
pub(crate) struct ProxyOptions {
    /// The configuration
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For tools
    Json,
}

/// Show from traces you already have which dependencies can take which services down
///
/// Reads dumps of traces, counts for each pair of services how often a failed callee took its caller
/// down, and prints P = P(caller failed | callee failed) with the class that follows: fail-close,
/// fail-open, or unknown. Nothing is sent anywhere. What cannot be read is told on standard error
/// and skipped; the exit code is 3 then.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: the traces that Jaeger keeps of one service\n\n    \
                             curl 'localhost:16686/api/traces?service=shop&limit=1000' | onus traces -")]
pub(crate) struct TracesOptions {
    /// Dumps, also compressed with gzip or zstd; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "graph")]
    pub(crate) files: Vec<PathBuf>,

    /// A graph whose edges the dumps may not show: Jaeger's dependencies, Isotope's YAML, or CSV
    /// with a header and the columns caller, callee and perhaps calls
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Vec<PathBuf>,

    /// The format of all files, where it is not to be detected in each
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = DumpFormat::Detect)]
    pub(crate) format: DumpFormat,

    /// A list of spans that failed, as of log lines: on each line a trace id and a span id
    #[arg(long, value_name = "FILE")]
    pub(crate) errors: Vec<PathBuf>,

    /// Count errors as failures also where their status says that they are not the callee's: 404
    /// and its like, and cancelled calls
    #[arg(long)]
    pub(crate) client_errors: bool,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = TracesOutput::Table)]
    pub(crate) output: TracesOutput,

    #[command(flatten)]
    pub(crate) storm: StormOptions,

    #[command(flatten)]
    pub(crate) columns: ColumnOptions,
}

/// What is assumed where a storm is looked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "How far a storm would reach")]
pub(crate) struct StormOptions {
    /// Attempts of a call that fails, on edges where repeated calls do not show them
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) attempts: u32,

    /// Which class says that a caller survives, so that a storm ends there
    #[arg(long, value_name = "READING", value_enum, default_value_t = ClassReading::Proven)]
    pub(crate) reading: ClassReading,

    /// A service that will have no Onus; may be given several times
    #[arg(long, value_name = "SERVICE")]
    pub(crate) no_claims: Vec<String>,

    /// A service whose calls cannot be tied to the request that it serves; may be given several
    /// times
    #[arg(long, value_name = "SERVICE")]
    pub(crate) context_loss: Vec<String>,
}

/// Which class says that a caller survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClassReading {
    /// Only one that is proven
    Proven,
    /// The raw class, each call counted
    Calls,
    /// The raw class, each request counted once
    Requests,
}

/// Which columns a table has. Files that are no JSON are tables then.
#[derive(Debug, Args)]
#[command(next_help_heading = "Tables with a header line, by the names of their columns")]
pub(crate) struct ColumnOptions {
    /// Trace id
    #[arg(long, value_name = "COLUMN", requires_all = ["span_column", "parent_column", "owner"])]
    pub(crate) trace_column: Option<String>,

    /// Span id
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) span_column: Option<String>,

    /// Id of the parent span; empty, root, null and the like for none
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) parent_column: Option<String>,

    /// Name of the service
    #[arg(long, value_name = "COLUMN", requires = "trace_column", group = "owner")]
    pub(crate) service_column: Option<String>,

    /// Name of the pod, where there is none of the service
    #[arg(long, value_name = "COLUMN", requires = "trace_column", group = "owner")]
    pub(crate) pod_column: Option<String>,

    /// client, server and the like
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) kind_column: Option<String>,

    /// Whether it failed: true, 1, error and the like, or an HTTP status
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) error_column: Option<String>,

    /// Name of the service that it calls
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) peer_column: Option<String>,

    /// Start: seconds, milli-, micro- or nanoseconds since 1970
    #[arg(long, value_name = "COLUMN", requires = "trace_column")]
    pub(crate) start_column: Option<String>,
}

/// The format of dumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DumpFormat {
    /// What each file looks like
    Detect,
    /// Jaeger's JSON, from the query API or the UI
    Jaeger,
    /// Zipkin's JSON, version 2
    Zipkin,
    /// OTLP as JSON
    OtlpJson,
    /// OTLP as protobuf
    OtlpProtobuf,
    /// A table, with the columns that are given
    Table,
}

/// How the result of traces is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TracesOutput {
    /// For people
    Table,
    /// For people with wide screens: with evidence, claims and depth
    Wide,
    /// For tools: everything
    Json,
    /// For tools: the edges
    Csv,
    /// The graph for Graphviz
    Dot,
    /// The graph for Markdown
    Mermaid,
    /// The graph as a picture
    Svg,
}

/// Show from the configuration, metrics and traces of a mesh how far a retry storm would reach in it
///
/// Reads retry configuration as `kubectl get -o yaml` prints it (Istio, Gateway API, Envoy, Envoy
/// Gateway, Linkerd, Contour, gRPC), the metrics that the mesh exports already, and dumps of traces,
/// any of which may be missing. Prints the edges that multiply most, radius and amplification as
/// they are and with ownership, budgets, and calls that are retried and not idempotent. Nothing is
/// changed or sent anywhere but queries to the server that is given. What cannot be read is told;
/// the exit code is 3 then.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: a mesh of Istio\n\n    \
                             kubectl get virtualservices,destinationrules -A -o yaml > mesh.yaml\n    \
                             kubectl -n istio-system port-forward svc/prometheus 9090 &\n    \
                             onus audit -f mesh.yaml --prom http://localhost:9090")]
pub(crate) struct AuditOptions {
    /// Retry configuration, YAML or JSON; a folder is each such file in it, - is standard input
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["prom", "traces", "graph"])]
    pub(crate) file: Vec<PathBuf>,

    /// The Prometheus of the mesh, or another server that speaks PromQL
    #[arg(long, value_name = "URL")]
    pub(crate) prom: Option<String>,

    /// How much time the metrics are about, as PromQL writes it
    #[arg(long, value_name = "TIME", default_value = "1h", requires = "prom")]
    pub(crate) window: String,

    /// The end of that time: seconds since 1970, or as 2026-11-30T14:00:00Z; now, unless given
    #[arg(long, value_name = "MOMENT", requires = "prom")]
    pub(crate) at: Option<String>,

    /// Dumps of traces, as `onus traces` reads them
    #[arg(long, value_name = "FILE")]
    pub(crate) traces: Vec<PathBuf>,

    /// Who calls whom, where nothing else shows it: Jaeger's dependencies, Isotope's YAML, or CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) graph: Vec<PathBuf>,

    /// How many rows a table has at most
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = AuditOutput::Table)]
    pub(crate) output: AuditOutput,
}

/// How the result of an audit is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AuditOutput {
    /// For people
    Table,
    /// For tools: everything
    Json,
    /// For a review
    Markdown,
}
