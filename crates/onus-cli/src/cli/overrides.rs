//! What can be typed about overrides.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{Output, Server};

/// List and set the classes of edges that operators say, until they expire
#[derive(Debug, Args)]
#[command(after_long_help = "Example: what would these have changed in the last hour?\n\n    \
                             onus overrides diff overrides.yaml")]
pub(crate) struct OverridesOptions {
    #[command(subcommand)]
    pub(crate) command: OverridesCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum OverridesCommand {
    /// List those that hold
    List {
        #[command(flatten)]
        at: OverridesAt,
    },
    /// Show how a file differs from what holds, and what that would have changed in the last hour
    Diff {
        /// The file, YAML or JSON
        file: PathBuf,

        /// Take it for the next text of the file that the analysis follows
        #[arg(long)]
        watched: bool,

        #[command(flatten)]
        at: OverridesAt,
    },
    /// Set all overrides of a file, or none; those that it does not name stay
    Apply {
        /// The file, YAML or JSON
        file: PathBuf,

        /// Set nothing, as `diff`
        #[arg(long)]
        dry_run: bool,

        #[command(flatten)]
        at: OverridesAt,
    },
    /// Take one back
    Drop {
        /// Its id, as `onus overrides list` shows it
        id: String,

        #[command(flatten)]
        at: OverridesAt,
    },
}

/// Where overrides are, and how they are shown.
#[derive(Debug, Args)]
pub(crate) struct OverridesAt {
    #[command(flatten)]
    pub(crate) server: Server,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}
