//! What can be typed to audit a mesh.

use std::path::PathBuf;

use clap::{ArgGroup, Args, ValueEnum};

/// Show from the configuration, metrics and traces of a mesh how far a retry storm would reach in it
///
/// Reads retry configuration as `kubectl get -o yaml` prints it (Istio, Gateway API, Envoy, Envoy
/// Gateway, Linkerd, Contour, gRPC), the metrics that the mesh exports already, and dumps of traces,
/// any of which may be missing. Prints the edges that multiply most, radius and amplification as
/// they are and with ownership, budgets, and calls that are retried and not idempotent. Nothing is
/// changed or sent anywhere but queries to the server that is given. What cannot be read is told;
/// the exit code is 3 then.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("evidence").args(["file", "prom", "traces", "graph"]).required(true).multiple(true))]
#[command(after_long_help = "Example: a mesh of Istio\n\n    \
                             kubectl get virtualservices,destinationrules -A -o yaml > mesh.yaml\n    \
                             kubectl -n istio-system port-forward svc/prometheus 9090 &\n    \
                             onus audit -f mesh.yaml --prom http://localhost:9090")]
pub(crate) struct AuditOptions {
    /// Retry configuration, YAML or JSON; a folder is each such file in it, - is standard input
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,

    /// The Prometheus of the mesh, or another server that speaks PromQL
    #[arg(long, value_name = "URL")]
    pub(crate) prom: Option<String>,

    /// A file with the token for it, sent as `Authorization: Bearer`
    #[arg(long, value_name = "FILE", requires = "prom")]
    pub(crate) prom_token_file: Option<PathBuf>,

    /// The authorities that sign its certificate, PEM; those of this machine, unless given
    #[arg(long, value_name = "FILE", requires = "prom")]
    pub(crate) prom_ca: Option<PathBuf>,

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
