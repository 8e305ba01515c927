//! What can be typed about overrides.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Output, Server};

/// List and set the classes of edges that operators say, until they expire
#[derive(Debug, Args)]
#[command(after_long_help = "Example: what would these have changed in the last hour?\n\n    \
                             onus overrides apply overrides.yaml --dry-run")]
pub(crate) struct OverridesOptions {
    #[command(subcommand)]
    pub(crate) command: OverridesCommand,

    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table, global = true)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverridesCommand {
    /// List those that hold
    List,
    /// Show how a file differs from what holds, and what that would have changed in the last hour
    Diff {
        /// The file, YAML or JSON
        file: PathBuf,
    },
    /// Set all overrides of a file, or none; those that it does not name stay
    Apply {
        /// The file, YAML or JSON
        file: PathBuf,
        /// Set nothing, as `diff`
        #[arg(long)]
        dry_run: bool,
    },
    /// Take one back
    Drop {
        /// Its id, as `onus overrides list` shows it
        id: String,
    },
}
