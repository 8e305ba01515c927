//! What can be typed to run the analysis and to read it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// Run the dependency analysis: take in what agents count, hand back the classes of edges
///
/// Reports are on disk before they are answered, and counted once. It ends on SIGTERM, when what is
/// under way is done. docs/analysis.md says how it is run.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "Example:\n\n    onus analysis --config analysis.yaml"
)]
pub(crate) struct AnalysisOptions {
    #[command(subcommand)]
    pub(crate) command: Option<AnalysisCommand>,

    /// The configuration file; `data: /var/lib/onus` is all that it must say
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) config: Option<PathBuf>,

    /// Where it listens, instead of what the file says; port 0 for any
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AnalysisCommand {
    /// Copy the store of a running analysis into a file
    ///
    /// Reports are taken in meanwhile. To go back to it, put the file in the place of
    /// `analysis.redb` in the data folder, with the analysis stopped or its store damaged.
    #[command(after_long_help = "Example:\n\n    onus analysis backup onus-$(date +%F).redb")]
    Backup {
        /// The file; one that is there is replaced when the copy is whole
        #[arg(value_name = "FILE")]
        file: PathBuf,

        #[command(flatten)]
        server: Server,
    },
}

/// Which analysis is asked.
#[derive(Debug, Args)]
pub(crate) struct Server {
    /// The analysis
    #[arg(
        long,
        value_name = "URL",
        env = "ONUS_ANALYSIS",
        default_value = "http://127.0.0.1:7480"
    )]
    pub(crate) analysis: String,

    /// The token for it
    #[arg(long, value_name = "TOKEN", env = "ONUS_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,

    #[command(flatten)]
    pub(crate) tls: TlsOptions,
}

/// Whom to believe, and who this is.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TlsOptions {
    /// The authorities that sign the certificate of whoever is asked, PEM; needed for https
    #[arg(long, value_name = "FILE", env = "ONUS_AUTHORITIES")]
    pub(crate) authorities: Option<PathBuf>,

    /// A certificate that says who asks, PEM
    #[arg(long, value_name = "FILE", env = "ONUS_CERTIFICATE", requires = "key")]
    pub(crate) certificate: Option<PathBuf>,

    /// The key of the certificate, PEM
    #[arg(long, value_name = "FILE", env = "ONUS_KEY", requires = "certificate")]
    pub(crate) key: Option<PathBuf>,
}

/// A window of time.
#[derive(Debug, Default, Args)]
pub(crate) struct Span {
    /// Only what went wrong since so long ago, up to 1d: other minutes are not kept
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub(crate) since: Option<Duration>,

    /// Until how long ago; without it until this moment
    #[arg(long, value_name = "TIME", value_parser = any_time, requires = "since")]
    pub(crate) until: Option<Duration>,
}

/// List the edges between services, with their counts and classes
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example: what does checkout depend on?\n\n    onus edges --caller checkout"
)]
pub(crate) struct EdgesOptions {
    /// Only the calls of this service
    #[arg(long, value_name = "SERVICE")]
    pub(crate) caller: Option<String>,

    /// Only the calls to this service
    #[arg(long, value_name = "SERVICE")]
    pub(crate) callee: Option<String>,

    #[command(flatten)]
    pub(crate) span: Span,

    /// Look again until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// Say why the edges from one service to another have the class they have
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus explain checkout payments")]
pub(crate) struct ExplainOptions {
    /// The service that calls
    #[arg(value_name = "CALLER")]
    pub(crate) caller: String,

    /// The service that is called
    #[arg(value_name = "CALLEE")]
    pub(crate) callee: String,

    #[command(flatten)]
    pub(crate) span: Span,

    /// Look again until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// Show the first minute of an incident on one screen: who is at fault, and who makes it worse
///
/// Asks the analysis, then the PromQL store, then the services themselves; the first that answers
/// is shown.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: with the analysis down\n\n    \
                             onus now --agents checkout-0:7470,payments-0:7470")]
pub(crate) struct NowOptions {
    #[command(flatten)]
    pub(crate) server: Server,

    /// A PromQL store that scrapes the services, such as http://prometheus:9090
    #[arg(long, value_name = "URL", env = "ONUS_PROMQL")]
    pub(crate) promql: Option<String>,

    /// The token for it
    #[arg(long, value_name = "TOKEN", env = "ONUS_PROMQL_TOKEN", hide_env_values = true)]
    pub(crate) promql_token: Option<String>,

    /// The authorities that sign its certificate, PEM; those of this machine, unless given
    #[arg(long, value_name = "FILE", env = "ONUS_PROMQL_CA")]
    pub(crate) promql_ca: Option<PathBuf>,

    /// The admin addresses of services
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,

    /// Look again until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// How a lever is pulled.
#[derive(Debug, Args)]
pub(crate) struct LeverOptions {
    /// Why; it stands in the audit log and in the metrics of the service
    #[arg(long, value_name = "TEXT", required_unless_present = "list")]
    pub(crate) reason: Option<String>,

    /// Who says so
    // Where an incident is fought from a container, nobody has set USER.
    #[arg(long, value_name = "NAME", env = "USER", default_value = "unknown")]
    pub(crate) who: String,

    /// Show the shields and modes that are in force, and until when
    #[arg(long, conflicts_with = "reason")]
    pub(crate) list: bool,

    /// At these admin addresses of processes, without the analysis; https:// for TLS, --token is
    /// theirs
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub(crate) agents: Vec<String>,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How --list prints
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table, requires = "list")]
    pub(crate) output: Output,
}

/// Let a service tell its callers to retry nothing, for a while
///
/// Every error that it answers says "do not retry", to callers that enforce, observe, or have no
/// Onus. It ends by itself.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Examples:\n\n    onus shield payments --for 15m --reason 'incident 42'\n    \
                       onus shield payments --end --reason 'it is over'\n    onus shield --list"
)]
pub(crate) struct ShieldOptions {
    /// The service
    #[arg(value_name = "SERVICE", required_unless_present = "list")]
    pub(crate) service: Option<String>,

    /// How long, 1s to 24h
    #[arg(long = "for", value_name = "TIME", default_value = "15m", value_parser = shield_time)]
    pub(crate) time: Duration,

    /// Take it down
    #[arg(long, visible_alias = "down", conflicts_with = "time")]
    pub(crate) end: bool,

    #[command(flatten)]
    pub(crate) lever: LeverOptions,
}

/// Take ownership out of the way: claims are neither sent nor read, configured retries go on
#[derive(Debug, Args)]
#[command(after_long_help = "Examples:\n\n    onus off --all --reason 'incident 42'\n    \
                       onus off --all --back --reason 'it is over'\n    onus off --list")]
pub(crate) struct OffOptions {
    /// The service
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,

    /// All services
    #[arg(long)]
    pub(crate) all: bool,

    /// How long; without it until --back
    #[arg(long = "for", value_name = "TIME", value_parser = any_time)]
    pub(crate) time: Option<Duration>,

    /// Take the order back
    #[arg(long, conflicts_with = "time")]
    pub(crate) back: bool,

    #[command(flatten)]
    pub(crate) lever: LeverOptions,
}

fn any_time(text: &str) -> Result<Duration, String> {
    let wrong = || "allowed is a time such as 90s, 15m, 2h or 7d".to_owned();
    onus_analysis::duration(text).filter(|time| !time.is_zero()).ok_or_else(wrong)
}

fn shield_time(text: &str) -> Result<Duration, String> {
    let range = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    let wrong = || "allowed is a time from 1s to 24h such as 90s, 15m or 2h".to_owned();
    any_time(text).ok().filter(|time| range.contains(time)).ok_or_else(wrong)
}

/// Show what calls come to, effective against actual, the worst edges first
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus top --caller checkout --watch")]
pub(crate) struct TopOptions {
    /// Only the calls of this service
    #[arg(long, value_name = "SERVICE")]
    pub(crate) caller: Option<String>,

    /// Only the calls to this service
    #[arg(long, value_name = "SERVICE")]
    pub(crate) callee: Option<String>,

    /// How many edges are shown
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,

    /// Look again until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) span: Span,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// Say how far a retry storm may reach below each service that nobody calls
#[derive(Debug, Args)]
#[command(after_long_help = "Example: what would make the storm below checkout smaller?\n\n    \
                             onus radius checkout")]
pub(crate) struct RadiusOptions {
    /// This service, with advice
    #[arg(value_name = "SERVICE")]
    pub(crate) service: Option<String>,

    /// Look again until interrupted
    #[arg(short, long)]
    pub(crate) watch: bool,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

/// Draw services and the calls between them
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus graph -o dot | dot -Tsvg > mesh.svg")]
pub(crate) struct GraphOptions {
    /// How it is drawn
    #[arg(short, long, alias = "format", value_name = "FORMAT", value_enum, default_value_t = Drawing::Mermaid)]
    pub(crate) output: Drawing,

    #[command(flatten)]
    pub(crate) server: Server,
}

/// How a graph is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// For Graphviz
    Dot,
    /// For Mermaid
    Mermaid,
    /// For tools
    Json,
}

/// Tell what an incident was, and how many requests were prevented
#[derive(Debug, Args)]
#[command(after_long_help = "Example: the two hours until an hour ago\n\n    \
                       onus report --since 2h --until 1h -o html > incident.html")]
pub(crate) struct ReportOptions {
    /// For how long, up to 1d
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = any_time)]
    pub(crate) since: Duration,

    /// Until how long ago; without it until this moment
    #[arg(long, value_name = "TIME", value_parser = any_time)]
    pub(crate) until: Option<Duration>,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = ReportFormat::Md)]
    pub(crate) output: ReportFormat,
}

/// How a report is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// Markdown
    Md,
    /// One page that needs nothing else
    Html,
    /// For tools
    Json,
}

/// Check whether services may be enforced; ends with 3 and the missing evidence by name if not
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus check --ready 'checkout -> payments'")]
pub(crate) struct CheckOptions {
    /// A service, or an edge such as 'checkout -> payments'; without it all of them
    #[arg(long, value_name = "SERVICE|EDGE")]
    pub(crate) ready: Option<String>,

    /// Evidence that need not be there, such as unsafe-methods; may be given several times
    #[arg(long, value_name = "EVIDENCE", value_parser = ["callers", "correlation", "false-suppression", "foreign-retries", "class", "policy", "unsafe-methods", "floor"])]
    pub(crate) accept: Vec<String>,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}
