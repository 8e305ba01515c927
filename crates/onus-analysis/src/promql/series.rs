//! The series of agents that are read back, and which count each of them is.

use onus_api::{EdgeCounts, ProcedureCounts};
use onus_promql::Sample;

/// A counter of agents.
#[derive(Clone, Copy, Debug)]
pub struct Series {
    /// Its name in a scrape.
    pub metric: &'static str,
    /// The recording rule that has what rose in a minute, summed over processes.
    pub recorded: &'static str,
    /// The labels that say what was counted, beside those that say of what.
    pub labels: &'static [&'static str],
    /// Which count it is.
    pub takes: Takes,
}

/// Where the value of a series goes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// To an edge: labels `caller`, `caller_method`, `callee`, `callee_method`.
    Edge(fn(&mut EdgeCounts, &Sample, u64)),
    /// To a procedure: by the labels with the service's name and with the procedure's.
    Procedure([&'static str; 2], fn(&mut ProcedureCounts, &Sample, u64)),
}

impl Series {
    /// The labels that say of what, down to procedures.
    #[must_use]
    pub const fn of(&self) -> &'static [&'static str] {
        match &self.takes {
            Takes::Edge(_) => &["caller", "caller_method", "callee", "callee_method"],
            Takes::Procedure([service, _], _) => match service.as_bytes() {
                b"caller" => &["caller", "caller_method"],
                _ => &["service", "method"],
            },
        }
    }

    /// What rose in `window`, such as `1m`, by these labels and the series' own.
    ///
    /// `increase` comes before `sum`: a sum over processes falls when one of them restarts, and a
    /// store takes that for a counter that starts anew.
    #[must_use]
    pub fn rose(&self, by: &[&str], matching: &str, window: &str) -> String {
        let by: Vec<_> = by.iter().chain(self.labels).copied().collect();
        format!("sum by ({}) (increase({}{matching}[{window}]))", by.join(", "), self.metric)
    }
}

const SERVED: [&str; 2] = ["service", "method"];

/// All counters that are read back.
pub const SERIES: [Series; 11] = [
    Series {
        metric: "onus_edge_requests_total",
        recorded: "onus:edge_requests:increase1m",
        labels: &["callee_outcome", "caller_outcome", "isolated"],
        takes: Takes::Edge(|counts, series, count| {
            let outcomes = ["callee_outcome", "caller_outcome", "isolated"];
            *match outcomes.map(|label| series.label(label)) {
                ["ok", "ok", _] => &mut counts.ok_caller_ok,
                ["ok", _, _] => &mut counts.ok_caller_failed,
                ["error", "ok", "true"] => &mut counts.alone_caller_ok,
                ["error", _, "true"] => &mut counts.alone_caller_failed,
                ["error", "ok", _] => &mut counts.jointly_caller_ok,
                _ => &mut counts.jointly_caller_failed,
            } += count;
        }),
    },
    Series {
        metric: "onus_clean_requests_total",
        recorded: "onus:clean_requests:increase1m",
        labels: &["outcome"],
        takes: Takes::Procedure(["caller", "caller_method"], |counts, series, count| {
            *match series.label("outcome") {
                "ok" => &mut counts.clean_ok,
                _ => &mut counts.clean_failed,
            } += count;
        }),
    },
    Series {
        metric: "onus_calls_total",
        recorded: "onus:calls:increase1m",
        labels: &["outcome"],
        takes: Takes::Edge(|counts, series, count| {
            *match series.label("outcome") {
                "ok" => &mut counts.calls_ok,
                "error" => &mut counts.calls_failed,
                _ => &mut counts.calls_abandoned,
            } += count;
        }),
    },
    Series {
        metric: "onus_retries_total",
        recorded: "onus:retries:increase1m",
        labels: &["verdict", "cause"],
        takes: Takes::Edge(|counts, series, count| {
            let cause = series.label("cause");
            if series.label("verdict") == "made" {
                counts.retries += count;
                match cause {
                    "claimed" | "claimed-silent" => counts.retries_claimed += count,
                    "unclaimed" | "unclaimed-shield" => counts.retries_unclaimed += count,
                    "probe" => counts.probes += count,
                    _ => counts.retries_missing += count,
                }
            } else {
                counts.retries_ok += count;
                match cause {
                    "unclaimed" | "unclaimed-shield" => counts.retries_unclaimed_ok += count,
                    "probe" => counts.probes_ok += count,
                    _ => {}
                }
            }
        }),
    },
    Series {
        metric: "onus_retries_not_made_total",
        recorded: "onus:retries_not_made:increase1m",
        labels: &["reason"],
        takes: Takes::Edge(|counts, series, count| {
            *match series.label("reason") {
                "suppressed" => &mut counts.suppressed,
                "marked" => &mut counts.marked,
                "gated" => &mut counts.gated,
                "budget-denied" => &mut counts.budget_denied,
                "pushback" => &mut counts.pushed_back,
                "exhausted" => &mut counts.exhausted,
                "not-replayable" => &mut counts.not_replayable,
                "no-time" => &mut counts.no_time,
                _ => &mut counts.not_configured,
            } += count;
        }),
    },
    Series {
        metric: "onus_shadow_suppressed_total",
        recorded: "onus:shadow_suppressed:increase1m",
        labels: &[],
        takes: Takes::Edge(|counts, _, count| counts.shadow_suppressed += count),
    },
    Series {
        metric: "onus_untied_calls_total",
        recorded: "onus:untied_calls:increase1m",
        labels: &[],
        takes: Takes::Edge(|counts, _, count| counts.untied += count),
    },
    Series {
        metric: "onus_repeats_total",
        recorded: "onus:repeats:increase1m",
        labels: &[],
        takes: Takes::Edge(|counts, _, count| counts.repeats += count),
    },
    Series {
        metric: "onus_invalid_claims_total",
        recorded: "onus:invalid_claims:increase1m",
        labels: &[],
        takes: Takes::Edge(|counts, _, count| counts.invalid_claims += count),
    },
    Series {
        metric: "onus_requests_total",
        recorded: "onus:requests:increase1m",
        labels: &["outcome"],
        takes: Takes::Procedure(SERVED, |counts, series, count| {
            *match series.label("outcome") {
                "ok" => &mut counts.ok,
                "error" => &mut counts.failed,
                _ => &mut counts.cancelled,
            } += count;
        }),
    },
    Series {
        metric: "onus_claims_total",
        recorded: "onus:claims:increase1m",
        labels: &["reason"],
        takes: Takes::Procedure(SERVED, |counts, series, count| {
            *match series.label("reason") {
                "own" => &mut counts.claims_own,
                "handoff" => &mut counts.claims_handoff,
                "silent" => &mut counts.claims_silent,
                "context-lost" => &mut counts.claims_context_lost,
                "operator" => &mut counts.claims_operator,
                _ => &mut counts.claims_dependency,
            } += count;
        }),
    },
];

/// Stores guess what rose between two scrapes, so that counts may be broken.
pub(super) fn count(value: f64) -> u64 {
    if value.is_finite() && value > 0.0 { value.round() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_a_store_are_whole_and_never_negative() {
        for (value, expected) in [(2.4, 2), (2.6, 3), (-1.0, 0), (f64::NAN, 0), (f64::INFINITY, 0)]
        {
            assert_eq!(count(value), expected, "{value}");
        }
    }

    #[test]
    fn the_shipped_rules_record_what_is_read_back() {
        let rules = include_str!("../../../../docs/prometheus/onus-rules.yaml");
        let rules: String = rules.split_whitespace().collect::<Vec<_>>().join(" ");
        for series in SERIES {
            let rose = series.rose(series.of(), "", "1m").replace(") (increase", ") ( increase");
            let [one, two] = [rose.clone(), rose.replace("( increase", "(increase")]
                .map(|rose| format!("record: {} expr: {rose}", series.recorded));
            let rules = rules.replace("expr: | ", "expr: ");
            assert!(rules.contains(&one) || rules.contains(&two), "{two}");
        }
        for (name, query) in super::super::facts::QUERIES {
            let expected = format!("record: {name} expr: {}", query(""));
            assert!(rules.contains(&expected), "{expected}");
        }
    }
}
