//! Where log lines go: to standard error, so that figures can be piped.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

/// Starts to log what `RUST_LOG` asks for; else what an operator should read, and of a `daemon` what
/// it does beside serving requests.
pub(crate) fn start(is_daemon: bool) {
    let filter = match EnvFilter::try_from_default_env() {
        Ok(asked) => asked,
        Err(_) if is_daemon => EnvFilter::new(DAEMON),
        Err(_) => EnvFilter::new(LevelFilter::WARN.to_string()),
    };
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
}

/// A line for each attempt is written only where somebody asks for it.
const DAEMON: &str = "info,onus::access=off";
