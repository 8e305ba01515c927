//! Configuration, metrics and traces joined, in one binary.

mod joined;
mod metrics;

use onus_audit::{About, Audit, EdgeFacts, Evidence, Metrics, audit};
use onus_promql::Sample;
use onus_retry_config::{Import, RetryConfig};

/// A series; `labels` as `a=b,c=d`.
fn sample(labels: &str, value: f64) -> Sample {
    let pairs = labels.split(',').filter(|pair| !pair.is_empty());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=').expect("a label has a value");
        (name.to_owned(), value.to_owned())
    };
    Sample { labels: pairs.map(pair).collect(), value, at: 0.0 }
}

fn metrics(answers: &[(About, &[(&str, f64)])]) -> Metrics {
    let mut metrics = Metrics::default();
    for (about, series) in answers {
        let samples: Vec<_> = series.iter().map(|(labels, value)| sample(labels, *value)).collect();
        metrics.take(*about, &samples);
    }
    metrics.finish()
}

fn config(yaml: &str) -> RetryConfig {
    let mut import = Import::default();
    import.read("a.yaml", yaml);
    let config = import.finish();
    assert_eq!(config.unread, []);
    config
}

/// Edges in one line each, in the order of their names.
fn lines(audit: &Audit) -> Vec<String> {
    let mut lines: Vec<_> = audit.storms.edges.iter().map(|edge| line(&edge.facts)).collect();
    lines.sort();
    lines
}

fn line(edge: &EdgeFacts) -> String {
    let number = |number: Option<f64>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
    format!(
        "{} -> {}: {} calls, {} failed, {} seen, {}, {} attempts by {}",
        edge.caller,
        edge.callee,
        number(edge.calls),
        number(edge.failure_ratio),
        number(edge.attempts_per_call),
        edge.class.as_str(),
        edge.retries.attempts,
        edge.retries.from.as_str(),
    )
}

fn of_metrics(metrics: &Metrics) -> Audit {
    let config = RetryConfig::default();
    audit(&Evidence { config: &config, traces: None, metrics: Some(metrics), listed: &[] })
}
