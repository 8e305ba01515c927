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
