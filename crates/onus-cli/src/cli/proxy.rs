//! What can be typed to run the sidecar and to check configurations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::Output;

/// Check and explain configurations of the sidecar and of the analysis
///
/// Variables of the environment win over the sidecar's file: `ONUS_INBOUND_LISTEN` is
/// `inbound.listen`, `ONUS_LIMITS_IDLE_TIMEOUT` is `limits.idle-timeout`.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus config validate onus.yaml\n    \
                       onus config example --of analysis > analysis.yaml")]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,

    /// Whose configuration it is
    #[arg(long, value_name = "WHOSE", value_enum, default_value_t = Whose::Proxy, global = true)]
    pub(crate) of: Whose,
}

/// Whose configuration it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Whose {
    /// That of `onus proxy`
    Proxy,
    /// That of `onus analysis`
    Analysis,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a file: nothing is printed if it can be used, else the line that cannot
    Validate {
        /// The configuration
        file: PathBuf,
    },
    /// Print every value in force, and whether it is the file's, a default or a variable's
    Show {
        /// The configuration
        file: PathBuf,
    },
    Import(ImportOptions),
    /// Print a file with every setting and what each is for
    Example,
    /// Print the JSON schema, for editors
    Schema,
}

/// Write a file from the retries of a mesh, a gateway or gRPC clients
///
/// Reads what `kubectl get -o yaml` prints of Istio, the Gateway API, Envoy Gateway, Linkerd and
/// Contour, dumps of Envoy and service configs of gRPC. The file has a policy per callee and
/// procedure, or declares the retries that others go on to make, as `--made-by` says. What cannot be
/// carried over is told with file and line on standard error; the exit code is 3 then.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: retries of a mesh, made by the sidecar from now on\n\n    \
                             kubectl get virtualservices,destinationrules -A -o yaml |\n      \
                             onus config import --service shop/checkout --made-by onus - > onus.yaml")]
pub(crate) struct ImportOptions {
    /// Retry configuration, YAML or JSON; a folder is each such file in it, - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,

    /// The service beside which the sidecar runs, `namespace/name` where namespaces exist
    #[arg(long, value_name = "NAME")]
    pub(crate) service: String,

    /// Who makes the retries from now on
    #[arg(long, value_name = "WHO", value_enum)]
    pub(crate) made_by: MadeBy,

    /// Where the application listens
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub(crate) app: String,

    /// Only this callee, `namespace/name`; may be given again
    #[arg(long, value_name = "NAME")]
    pub(crate) callee: Vec<String>,

    /// The callee of the gRPC service configs, which do not name it
    #[arg(long, value_name = "NAME")]
    pub(crate) grpc_callee: Option<String>,

    /// The port of callees whose port is not written
    #[arg(long, value_name = "PORT", default_value_t = 80)]
    pub(crate) port: u16,

    /// The service is a gateway: what gateways retry is meant too
    #[arg(long)]
    pub(crate) gateway: bool,

    /// Carry over that POST, PUT, PATCH and DELETE are retried where no method is named
    #[arg(long)]
    pub(crate) unsafe_methods: bool,
}

/// Who makes retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MadeBy {
    /// The sidecar; they are to be taken out where they were
    Onus,
    /// Those who made them before, between the sidecar and its callees
    Below,
}

/// Run the sidecar: error ownership for the service beside it, in any language
///
/// Requests come through its inbound listener to the application, calls of the application go
/// through its outbound listener to their callees.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example:\n\n    onus proxy --config onus.yaml",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct ProxyOptions {
    #[command(subcommand)]
    pub(crate) command: Option<ProxyCommand>,

    /// The configuration
    #[arg(short, long, value_name = "FILE", required = true)]
    pub(crate) config: Option<PathBuf>,
}

/// What is asked of a sidecar that runs.
#[derive(Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    Drain(DrainOptions),
}

/// Begin the drain of a sidecar before it is told to end, as from a preStop hook
///
/// It is not ready from then on, and after `drain.delay` its clients are told that it ends. Calls of
/// the application are served until the signal, as before it. Asked again, nothing changes.
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus proxy drain 127.0.0.1:7470")]
pub(crate) struct DrainOptions {
    /// The admin address of the sidecar
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:7470")]
    pub(crate) sidecar: String,

    /// The token in its admin.token-file; from the same machine none is needed
    #[arg(long, value_name = "TOKEN", env = "ONUS_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<String>,
}

/// Show each attempt that sidecars make, while it happens
///
/// A line has the time, the service and its callee, the attempt, the status, how long it took,
/// whether a retry is open or closed to whoever called, and where the error began. A sidecar keeps
/// 512 lines for a reader and never waits for one: who is too slow is told how many lines are missing.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: which errors may still be retried?\n\n    \
                             onus tail --status 5xx --retry open checkout-0:7470 payments-0:7470")]
pub(crate) struct TailOptions {
    /// The admin addresses of sidecars
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:7470")]
    pub(crate) sidecars: Vec<String>,

    /// Only attempts of this service
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,

    /// Only attempts to this callee, of this method and path: `shop/payments POST /charge`
    #[arg(long, value_name = "CALLEE")]
    pub(crate) edge: Option<String>,

    /// Only attempts that ended so: 503, 5xx, grpc-14, or none for no answer
    #[arg(long, value_name = "STATUS")]
    pub(crate) status: Option<String>,

    /// Only errors after which a retry is open, or closed
    #[arg(long, value_name = "open|closed", value_parser = ["open", "closed"])]
    pub(crate) retry: Option<String>,

    /// Only errors that began at this service
    #[arg(long, value_name = "NAME")]
    pub(crate) origin: Option<String>,

    /// How lines are printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}
