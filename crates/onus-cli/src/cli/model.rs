//! What can be typed to check the bounds of the protocol.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use onus_sim::model::{Rules, SLICES};

use super::Output;

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
