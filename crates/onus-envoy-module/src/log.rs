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
    for lack in callbacks.lacks() {
        tracing::warn!("onus: this Envoy {lack}");
    }
}

const PANICS_TOLD: u32 = 10;

/// This process is no Envoy that is supported, and has no log to say so in.
pub(crate) fn unsupported(lacks: &str) {
    let _ = writeln!(
        io::stderr(),
        "onus: this Envoy lacks {lacks}, which the module needs; it works with Envoy {VERSIONS}"
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
        metadata.is_event()
            && match self.0.log_enabled {
                // SAFETY: it takes a number.
                Some(enabled) => unsafe { enabled(level) },
                // Envoy drops what it does not want; of lines for each request none is made.
                None => *metadata.level() <= Level::INFO,
            }
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
