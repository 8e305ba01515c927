//! How many files the process may have open. Each connection on loopback takes two.

/// Raises the limit as far as the user may, up to [`ENOUGH`], and tells it.
#[cfg(unix)]
pub(crate) fn raise_limit() -> u64 {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let limit = getrlimit(Resource::Nofile);
    // No limit is `None`.
    let current = limit.current.unwrap_or(ENOUGH);
    let wanted = limit.maximum.unwrap_or(ENOUGH).min(ENOUGH);
    if current >= wanted {
        return current;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    if setrlimit(Resource::Nofile, raised).is_ok() { wanted } else { current }
}

/// There is no such limit.
#[cfg(not(unix))]
pub(crate) fn raise_limit() -> u64 {
    ENOUGH
}

/// More than the demo makes use of, and less than any system refuses.
const ENOUGH: u64 = 8192;
