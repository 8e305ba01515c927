//! What a scrape returns: the counts of the mesh, and how the analysis itself is.
//!
//! The counts are sums over all processes of a service, so that a database need not add them up,
//! and every series of an edge is there from its first report on, at zero: a database that meets a
//! series at one has not seen it rise. `onus_edge_requests_total` and `onus_clean_requests_total`
//! have the names and labels that agents give them; scrape the one or the others, not both.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use onus_api::OverrideSource;
use onus_core::EdgeClass;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::book::{Book, EdgeRow};
use crate::clock::Millis;
use crate::engine::Analysis;

/// What became of reports since the process started.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    stored: AtomicU64,
    repeated: AtomicU64,
    refused: AtomicU64,
    put_off: AtomicU64,
}

impl Reports {
    pub(crate) fn stored(&self, repeated: bool) {
        let count = if repeated { &self.repeated } else { &self.stored };
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn put_off(&self) {
        self.put_off.fetch_add(1, Ordering::Relaxed);
    }
}

/// The text of a scrape, as OpenMetrics.
pub(crate) fn scrape(analysis: &Analysis) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(analysis.clone())));
    let mut page = String::new();
    text::encode(&mut page, &registry)?;
    Ok(page)
}

#[derive(Debug)]
struct Families(Analysis);

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let analysis = &self.0;
        let book = analysis.book();
        let mut page = Page(encoder);
        mesh(&book, &mut page)?;
        own(analysis, &book, &mut page)
    }
}

type Label<'a> = (&'static str, &'a str);

fn labels<'a>(book: &'a Book, row: &EdgeRow) -> [Label<'a>; 4] {
    let key = row.key;
    [
        ("caller", &**book.names.name(key.caller)),
        ("caller_method", book.names.name(key.caller_procedure)),
        ("callee", book.names.name(key.callee)),
        ("callee_method", book.names.name(key.procedure)),
    ]
}

fn mesh(book: &Book, page: &mut Page<'_>) -> fmt::Result {
    let help = "Finished requests that called the edge, by what became of callee and caller; \
                isolated: no other edge to blame failed in the request.";
    let mut family = page.counters("onus_edge_requests", help)?;
    for row in book.edges() {
        let of = labels(book, row);
        let counts = &row.counts;
        for (callee, caller, isolated, count) in [
            ("ok", "ok", "false", counts.ok_caller_ok),
            ("ok", "error", "false", counts.ok_caller_failed),
            ("error", "ok", "true", counts.alone_caller_ok),
            ("error", "error", "true", counts.alone_caller_failed),
            ("error", "ok", "false", counts.jointly_caller_ok),
            ("error", "error", "false", counts.jointly_caller_failed),
        ] {
            let own =
                [("callee_outcome", callee), ("caller_outcome", caller), ("isolated", isolated)];
            family.add(&(of, own), count)?;
        }
    }
    let help = "Finished requests that blame no outbound call.";
    let mut family = page.counters("onus_clean_requests", help)?;
    for row in book.procedures() {
        let of = [
            ("caller", &**book.names.name(row.key.service)),
            ("caller_method", book.names.name(row.key.procedure)),
        ];
        for (outcome, count) in [("ok", row.counts.clean_ok), ("error", row.counts.clean_failed)] {
            family.add(&(of, [("outcome", outcome)]), count)?;
        }
    }
    let help = "Logical calls, by how they ended.";
    let mut family = page.counters("onus_edge_calls", help)?;
    for row in book.edges() {
        for (outcome, count) in [("ok", row.counts.calls_ok), ("error", row.counts.calls_failed)] {
            family.add(&(labels(book, row), [("outcome", outcome)]), count)?;
        }
    }
    single(book, page, "onus_edge_attempts", "Attempts: what the callee received.", |row| {
        row.counts.attempts()
    })?;
    single(book, page, "onus_edge_suppressed", "Retries not made of unclaimed errors.", |row| {
        row.counts.suppressed
    })?;
    let help = "Retries made after an answer without a claim, or after silence.";
    single(book, page, "onus_edge_missing_claims", help, |row| row.counts.retries_missing)?;
    let help = "Calls that could not be tied to the request they were made for.";
    single(book, page, "onus_edge_untied_calls", help, |row| row.counts.untied)?;
    let help = "Retries that the budget of the edge denied.";
    single(book, page, "onus_edge_budget_denied", help, |row| row.counts.budget_denied)?;
    let help = "1 for the class of the edge that agents are told, 0 for the others.";
    let mut family = page.gauges("onus_edge_class", help)?;
    let now = Millis::now();
    for row in book.edges() {
        for class in [EdgeClass::FailClose, EdgeClass::FailOpen, EdgeClass::Unknown] {
            let is = f64::from(u8::from(book.class(row, now) == class));
            family.add(&(labels(book, row), [("class", class.as_str())]), is)?;
        }
    }
    let help = "1 where a layer below retries that nobody declared.";
    let mut family = page.gauges("onus_edge_foreign_retries", help)?;
    for row in book.edges() {
        family.add(&labels(book, row), f64::from(u8::from(row.policy.foreign_retries)))?;
    }
    Ok(())
}

fn single(
    book: &Book,
    page: &mut Page<'_>,
    name: &'static str,
    help: &str,
    count: impl Fn(&EdgeRow) -> u64,
) -> fmt::Result {
    let mut family = page.counters(name, help)?;
    book.edges().try_for_each(|row| family.add(&labels(book, row), count(row)))
}

fn own(analysis: &Analysis, book: &Book, page: &mut Page<'_>) -> fmt::Result {
    let help = "Reports, by what became of them.";
    let mut family = page.counters("onus_analysis_reports", help)?;
    let reports = analysis.reports();
    for (result, count) in [
        ("stored", &reports.stored),
        ("repeated", &reports.repeated),
        ("refused", &reports.refused),
        ("put-off", &reports.put_off),
    ] {
        family.add(&[("result", result)], count.load(Ordering::Relaxed))?;
    }
    let noticed = &book.noticed;
    for (name, help, count) in [
        (
            "onus_analysis_lost_reports",
            "Reports that never came, by the numbers of those that did.",
            noticed.lost_reports,
        ),
        (
            "onus_analysis_overflows",
            "Edges and procedures of reports that found no room of their own, and went to __other__.",
            noticed.overflows,
        ),
        (
            "onus_analysis_replaced_names",
            "Names that were too long or had characters that no label should have.",
            noticed.replaced_names,
        ),
        (
            "onus_analysis_forgotten_instances",
            "Processes forgotten to make room for others.",
            noticed.forgotten_instances,
        ),
    ] {
        page.counters(name, help)?.add(&NO_LABELS, count)?;
    }
    if let Some(usable) = analysis.overrides_file_usable() {
        let help = "Whether the overrides file could be read; what it said before holds if not.";
        let mut family = page.gauges("onus_analysis_overrides_file_usable", help)?;
        family.add(&NO_LABELS, f64::from(u8::from(usable)))?;
    }
    let mut family = page.gauges("onus_analysis_overrides", "Overrides that hold, by source.")?;
    for source in [OverrideSource::Api, OverrideSource::File] {
        let count = book.said.overrides.iter().filter(|it| it.source == source).count();
        family.add(&[("source", source.as_str())], count as f64)?;
    }
    let now = Millis::now();
    let age = now.saturating_sub(book.ticks[0]) as f64 / 1000.0;
    let usable = f64::from(u8::from(analysis.broken().is_none()));
    for (name, help, value) in [
        ("onus_analysis_edges", "Edges that are remembered.", book.edge_count() as f64),
        (
            "onus_analysis_instances",
            "Processes that are remembered.",
            book.instances().count() as f64,
        ),
        ("onus_analysis_classes_age_seconds", "Time since counts last became evidence.", age),
        ("onus_analysis_store_usable", "Whether reports can be stored.", usable),
    ] {
        page.gauges(name, help)?.add(&NO_LABELS, value)?;
    }
    Ok(())
}

const NO_LABELS: [Label<'static>; 0] = [];

/// The text under construction.
struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    fn counters(&mut self, name: &'static str, help: &str) -> Result<Counters<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Counter).map(Counters)
    }

    fn gauges(&mut self, name: &'static str, help: &str) -> Result<Gauges<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge).map(Gauges)
    }
}

struct Counters<'a>(MetricEncoder<'a>);

impl Counters<'_> {
    fn add(&mut self, labels: &impl EncodeLabelSet, count: u64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_counter::<NoLabelSet, u64, u64>(&count, None)
    }
}

struct Gauges<'a>(MetricEncoder<'a>);

impl Gauges<'_> {
    fn add(&mut self, labels: &impl EncodeLabelSet, value: f64) -> fmt::Result {
        self.0.encode_family(labels)?.encode_gauge(&value)
    }
}
