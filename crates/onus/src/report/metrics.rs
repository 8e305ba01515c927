//! What became of reports, and how old the classes are.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use tokio::time::Instant;

/// What became of reports, and when classes were last confirmed.
#[derive(Debug)]
pub(crate) struct Standing {
    start: Instant,
    stored: AtomicU64,
    repeated: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    /// In milliseconds since the start; before it where classes are older. Zero: never.
    confirmed: AtomicU64,
    was_confirmed: AtomicBool,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            start: Instant::now(),
            stored: AtomicU64::new(0),
            repeated: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            confirmed: AtomicU64::new(0),
            was_confirmed: AtomicBool::new(false),
        }
    }
}

impl Standing {
    pub(crate) fn stored(&self, repeated: bool) {
        let count = if repeated { &self.repeated } else { &self.stored };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// The classes in use were right this long ago.
    pub(crate) fn confirmed(&self, age: Duration) {
        let at = (self.start.elapsed() + OFFSET).saturating_sub(age);
        self.confirmed.store(u64::try_from(at.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.was_confirmed.store(true, Ordering::Relaxed);
    }

    /// Whether classes were in use until now, and are not any more.
    pub(crate) fn is_stale_now(&self) -> bool {
        self.was_confirmed.swap(false, Ordering::Relaxed)
    }

    fn age(&self) -> Option<Duration> {
        let confirmed = Duration::from_millis(self.confirmed.load(Ordering::Relaxed));
        let known = self.was_confirmed.load(Ordering::Relaxed);
        known.then(|| (self.start.elapsed() + OFFSET).saturating_sub(confirmed))
    }
}

/// So that classes older than the process have a time that is not negative: a year.
const OFFSET: Duration = Duration::from_secs(365 * 86_400);

pub(crate) fn register(standing: Arc<Standing>, registry: &mut Registry) {
    registry.register_collector(Box::new(Families(standing)));
}

#[derive(Debug)]
struct Families(Arc<Standing>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let standing = &*self.0;
        let help = "Reports to the analysis, by what became of them.";
        let kind = prometheus_client::metrics::MetricType::Counter;
        let mut family = encoder.encode_descriptor("onus_reports", help, None, kind)?;
        for (result, count) in [
            ("stored", &standing.stored),
            ("repeated", &standing.repeated),
            ("refused", &standing.refused),
            ("failed", &standing.failed),
        ] {
            let counter = ConstCounter::new(count.load(Ordering::Relaxed));
            counter.encode(family.encode_family(&[("result", result)])?)?;
        }
        if let Some(age) = standing.age() {
            let help = "Time since the analysis last confirmed the classes in use.";
            let unit = prometheus_client::registry::Unit::Seconds;
            let kind = prometheus_client::metrics::MetricType::Gauge;
            let family = encoder.encode_descriptor("onus_classes_age", help, Some(&unit), kind)?;
            ConstGauge::new(age.as_secs_f64()).encode(family)?;
        }
        Ok(())
    }
}
