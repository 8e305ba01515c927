//! What can be typed to play a scenario.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

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
