//! All that can be typed, a file for each kind of command.

mod analysis;
mod audit;
mod demo;
mod model;
mod overrides;
mod proxy;
mod simulate;
mod traces;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use self::analysis::*;
pub(crate) use self::audit::*;
pub(crate) use self::demo::*;
pub(crate) use self::model::*;
pub(crate) use self::overrides::*;
pub(crate) use self::proxy::*;
pub(crate) use self::simulate::*;
pub(crate) use self::traces::*;

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
    Overrides(OverridesOptions),
    Shield(ShieldOptions),
    Top(TopOptions),
    Radius(RadiusOptions),
    Graph(GraphOptions),
    Report(ReportOptions),
    Check(CheckOptions),
    Proxy(ProxyOptions),
    Tail(TailOptions),
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For tools
    Json,
}
