//! What can be typed to run the sidecar and to check configurations.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Check and explain configurations of the sidecar and of the analysis
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
    /// Print a file with every default
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
#[command(after_long_help = "Example:\n\n    onus proxy --config onus.yaml")]
pub(crate) struct ProxyOptions {
    /// The configuration
    #[arg(short, long, value_name = "FILE")]
    pub(crate) config: PathBuf,
}
