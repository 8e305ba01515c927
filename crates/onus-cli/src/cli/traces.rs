//! What can be typed to read dumps of traces.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
