//! The agent's counters as Prometheus families.

use std::sync::Arc;

use onus_core::Timestamp;
use prometheus_client::registry::Registry;

use crate::agent::Agent;

impl Agent {
    /// Registers the agent's families; `now` is asked at each scrape.
    pub fn register_metrics(
        self: &Arc<Self>,
        registry: &mut Registry,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) {
        let _ = (registry, now);
    }
}
