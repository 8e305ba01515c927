//! What the agent tells, in Envoy's log.

use std::io::{self, Write as _};
use std::panic;
use std::sync::atomic::{AtomicU32, Ordering};

use onus_envoy::{ConfigError, log_text};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::abi::{Buffer, Callbacks};

/// The versions of Envoy that this library was tested with.
const VERSIONS: &str = "1.38, 1.39 and 1.40";

/// Numbers of `envoy_dynamic_module_type_log_level`.
const fn number_of(level: Level) -> u32 {
    match level {
        Level::TRACE => 0,
        Level::DEBUG => 1,
        Level::INFO => 2,
        Level::WARN => 3,
        Level::ERROR => 4,
    }
}

/// From here on the agent's lines and this library's panics are in Envoy's log.
pub(crate) fn start(callbacks: &'static Callbacks) {
    // An Envoy loads the library once; where somebody has set another, that one stays.
    let _ = tracing::subscriber::set_global_default(ToEnvoy(callbacks));
    panic::set_hook(Box::new(|info| {
        static TOLD: AtomicU32 = AtomicU32::new(0);
        // A panic in each request must not fill the disk.
        if TOLD.fetch_add(1, Ordering::Relaxed) < PANICS_TOLD {
            tracing::error!("onus: a fault that cost no request: {info}");
        }
    }));
    if !callbacks.tells_attempts {
        tracing::warn!(
            "onus: this Envoy does not tell filters of its attempts: set \
             include_request_attempt_count on virtual hosts, so that callees do, or use 1.39 or \
             later"
        );
    }
}

const PANICS_TOLD: u32 = 10;

/// This process is no Envoy that is supported, and has no log to say so in.
pub(crate) fn no_callbacks() {
    let _ = writeln!(
        io::stderr(),
        "onus: this Envoy lacks functions that the module needs; it works with Envoy {VERSIONS}"
    );
}

/// A filter's configuration is refused.
pub(crate) fn refused(name: &[u8], error: &ConfigError) {
    tracing::error!("onus: filter {:?}: {error}", String::from_utf8_lossy(name));
}

struct ToEnvoy(&'static Callbacks);

impl Subscriber for ToEnvoy {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let level = number_of(*metadata.level());
        // SAFETY: it takes a number.
        metadata.is_event() && self.0.log_enabled.is_some_and(|enabled| unsafe { enabled(level) })
    }

    fn register_callsite(&self, _: &'static Metadata<'static>) -> tracing::subscriber::Interest {
        // Envoy's log level changes while it runs.
        tracing::subscriber::Interest::sometimes()
    }

    fn event(&self, event: &Event<'_>) {
        let Some(log) = self.0.log else { return };
        let text = log_text(event);
        // SAFETY: Envoy copies the text before it returns.
        unsafe { log(number_of(*event.metadata().level()), Buffer::of(text.as_bytes())) };
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
