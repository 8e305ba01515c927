//! All that can be typed.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use onus_demo::{Demo, Node, Protocol};
use onus_sim::model::{Rules, SLICES};

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

    /// Services that know nothing of Onus, with a sidecar process beside each
    #[arg(long)]
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
    #[arg(long, value_name = "SLICE", value_parser = PossibleValuesParser::new(SLICES.map(|slice| slice.name)))]
    pub(crate) slice: Vec<String>,

    /// The rules; all but the shipped ones were rejected, and break properties
    #[arg(long, value_name = "RULES", default_value = Rules::Shipped.as_str(),
          value_parser = PossibleValuesParser::new(Rules::ALL.map(Rules::as_str)))]
    pub(crate) rules: String,

    /// Run one trace again, and print it
    #[arg(long, value_name = "ID", conflicts_with_all = ["slice", "rules", "nodes"])]
    pub(crate) rerun: Option<String>,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
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
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

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
    pub(crate) columns: ColumnOptions,
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
}
