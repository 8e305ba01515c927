//! The events in which the layers tell each decision, as a log would have them.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A decision after a failed attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Decision {
    pub(super) callee: String,
    pub(super) retried: bool,
    /// What let the retry pass, or why there is none.
    pub(super) reason: String,
}

thread_local! {
    /// The decisions on this thread that nobody has taken yet.
    static TOLD: RefCell<Vec<Decision>> = const { RefCell::new(Vec::new()) };
}

/// The decisions told on this thread since the last time. The first time only starts to listen.
pub(super) fn take_decisions() -> Vec<Decision> {
    static LISTENS: Once = Once::new();
    // One listener for all threads: one that comes and goes with a test would miss events while
    // tests on other threads meet them for the first time.
    LISTENS.call_once(|| {
        let set = tracing::subscriber::set_global_default(Listener);
        set.expect("nobody else listens in this binary");
    });
    TOLD.take()
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("onus")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        if event.metadata().fields().field("retried").is_some() {
            let mut decision = Decision::default();
            event.record(&mut decision);
            TOLD.with_borrow_mut(|told| told.push(decision));
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Visit for Decision {
    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "retried" {
            self.retried = value;
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "reason" {
            value.clone_into(&mut self.reason);
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "callee" {
            self.callee = format!("{value:?}");
        }
    }
}
