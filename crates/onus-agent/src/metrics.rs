//! The agent's counters as Prometheus families (docs/metrics.md says what each is for).
//!
//! Nothing is counted twice: a scrape reads the counters that learning and budgets use. All series
//! of an edge or a procedure exist from its first use on, at zero, because a database that meets a
//! series at one has not seen it rise. Series that cannot occur (a probe in mode off) are left out
//! until they occur after all.

mod edges;
mod family;
mod procedures;
mod service;

use std::fmt;
use std::sync::Arc;

use onus_core::Timestamp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;

use self::family::Page;
use crate::agent::Agent;

impl Agent {
    /// Registers the agent's families; `now` is asked at each scrape.
    ///
    /// Each agent has its own registry: a family may stand in an exposition once.
    pub fn register_metrics(
        self: &Arc<Self>,
        registry: &mut Registry,
        now: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) {
        registry.register_collector(Box::new(Families { agent: self.clone(), now }));
    }
}

struct Families<F> {
    agent: Arc<Agent>,
    now: F,
}

impl<F> fmt::Debug for Families<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Families").field("service", self.agent.service()).finish_non_exhaustive()
    }
}

impl<F: Fn() -> Timestamp + Send + Sync + 'static> Collector for Families<F> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let now = (self.now)();
        let mut page = Page(encoder);
        edges::encode(&self.agent, now, &mut page)?;
        procedures::encode(&self.agent, &mut page)?;
        service::encode(&self.agent, now, &mut page)
    }
}
