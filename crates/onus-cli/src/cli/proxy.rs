//! What can be typed to run the sidecar and to check its configuration.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Check and explain configurations of the sidecar
#[derive(Debug, Args)]
#[command(after_long_help = "Example:\n\n    onus config validate onus.yaml")]
pub(crate) struct ConfigOptions {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
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
    /// Print a file with every setting and what each is for
    Example,
    /// Print the JSON schema, for editors
    Schema,
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
