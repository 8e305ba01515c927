//! The clock of the process.

use std::sync::LazyLock;
use std::time::{Instant, SystemTime};

use onus_envoy::Timestamp;

/// The time since the library was loaded.
#[expect(clippy::disallowed_methods, reason = "the module's one clock")]
pub(crate) fn now() -> Timestamp {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // Later than nothing, so that no time is taken for "never".
    let start = *START;
    Timestamp::ZERO.saturating_add(Instant::now().saturating_duration_since(start))
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "the module's one wall clock")]
pub(crate) fn wall() -> SystemTime {
    SystemTime::now()
}
