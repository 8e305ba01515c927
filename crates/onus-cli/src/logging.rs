//! Where log lines go: to standard error, so that figures can be piped.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts to log what `RUST_LOG` asks for; by default what an operator should read.
pub(crate) fn start() {
    let filter =
        EnvFilter::builder().with_default_directive(LevelFilter::WARN.into()).from_env_lossy();
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}
