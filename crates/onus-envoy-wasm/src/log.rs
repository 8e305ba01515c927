//! What the agent tells, in Envoy's log.

use onus_envoy::log_text;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::abi;

/// From here on the agent's lines are in Envoy's log.
pub(crate) fn start() {
    // A worker starts once.
    let _ = tracing::subscriber::set_global_default(ToEnvoy);
}

struct ToEnvoy;

impl Subscriber for ToEnvoy {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Lines for each request would be made at a cost before Envoy drops them.
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let level = match *event.metadata().level() {
            Level::TRACE => abi::Level::Trace,
            Level::DEBUG => abi::Level::Debug,
            Level::INFO => abi::Level::Info,
            Level::WARN => abi::Level::Warn,
            Level::ERROR => abi::Level::Error,
        };
        abi::log(level, &log_text(event));
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
