//! How a family is written.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

/// Names and values of labels.
pub(super) type Labels<'a, const N: usize> = [(&'static str, &'a str); N];

/// The text under construction.
pub(super) struct Page<'a>(pub(super) DescriptorEncoder<'a>);

impl Page<'_> {
    /// A family of counters; `_total` is added to its name.
    pub(super) fn counters(
        &mut self,
        name: &'static str,
        help: &str,
    ) -> Result<Counters<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Counter).map(Counters)
    }

    /// A family of gauges.
    pub(super) fn gauges(
        &mut self,
        name: &'static str,
        help: &str,
    ) -> Result<Gauges<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge).map(Gauges)
    }

    /// A family whose labels say something and whose value is 1; `_info` is added to its name.
    pub(super) fn infos(
        &mut self,
        name: &'static str,
        help: &str,
    ) -> Result<Infos<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Info).map(Infos)
    }
}

pub(super) struct Counters<'a>(MetricEncoder<'a>);

impl Counters<'_> {
    pub(super) fn add(&mut self, labels: &impl EncodeLabelSet, count: u64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)
    }

    /// A series that is left out at zero where it is not `expected`.
    pub(super) fn add_if(
        &mut self,
        expected: bool,
        labels: &impl EncodeLabelSet,
        count: u64,
    ) -> fmt::Result {
        if expected || count > 0 { self.add(labels, count) } else { Ok(()) }
    }
}

pub(super) struct Gauges<'a>(MetricEncoder<'a>);

impl Gauges<'_> {
    pub(super) fn add(&mut self, labels: &impl EncodeLabelSet, value: f64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_gauge(&value)
    }
}

pub(super) struct Infos<'a>(MetricEncoder<'a>);

impl Infos<'_> {
    pub(super) fn add(&mut self, labels: &impl EncodeLabelSet) -> fmt::Result {
        self.0.encode_info(labels)
    }
}
