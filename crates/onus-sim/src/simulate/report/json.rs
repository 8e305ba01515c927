//! One JSON document.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::simulate::exact::Ratio;
use crate::simulate::experiment::Experiment;
use crate::simulate::outcome::{BadKeys, Estimate, Outcome, Recovery, Stopped};

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    scenario: &'a str,
    seeds: u32,
    partial: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameter: Option<&'a str>,
    runs: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    policy: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
    seeds: usize,
    /// Requests that each service handled: the mean over the seeds.
    handled: BTreeMap<&'a str, f64>,
    load: BTreeMap<&'a str, Interval>,
    /// Of each service's own errors, the share that it did not claim.
    own_unclaimed: BTreeMap<&'a str, Interval>,
    load_factor: Option<Interval>,
    availability: Interval,
    goodput: Interval,
    /// Absent where no outage ends; null where some run never recovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery_s: Option<Option<Interval>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovered: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bad_keys: Option<Bad>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped: Option<Spared>,
    attempts: Interval,
    retries: Interval,
    suppressed: Interval,
    gated: Interval,
    denied: Interval,
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<ClosedForm>,
}

/// Fractions as text, so that nothing is rounded.
#[derive(Serialize)]
struct ClosedForm {
    load: Vec<String>,
    availability: String,
}

/// A mean with half the width of its 95 % confidence interval.
#[derive(Serialize)]
struct Interval {
    mean: f64,
    half_width: f64,
}

/// Requests that the policy compared with would have sent beyond those that were.
#[derive(Serialize)]
struct Spared {
    direct: f64,
    all: f64,
}

#[derive(Serialize)]
struct Bad {
    load_factor: Option<Interval>,
    availability: Option<Interval>,
    others_availability: Option<Interval>,
}

impl From<Estimate> for Interval {
    fn from(estimate: Estimate) -> Self {
        Self { mean: estimate.mean, half_width: estimate.half_width }
    }
}

/// The experiment as one JSON document, with a line break at its end.
#[must_use]
pub fn json(experiment: &Experiment) -> String {
    let document = Document {
        schema_version: 1,
        scenario: &experiment.scenario,
        seeds: experiment.seeds,
        partial: experiment.partial,
        parameter: experiment.parameter,
        runs: experiment.outcomes.iter().map(entry).collect(),
    };
    let text = serde_json::to_string_pretty(&document);
    text.expect("text and finite numbers are JSON") + "\n"
}

fn entry(outcome: &Outcome) -> Entry<'_> {
    let services = &outcome.services;
    Entry {
        policy: &outcome.policy,
        value: outcome.value,
        seeds: outcome.runs,
        handled: services.iter().map(|s| (s.name.as_str(), s.handled.mean)).collect(),
        load: services.iter().map(|s| (s.name.as_str(), s.per_request.into())).collect(),
        own_unclaimed: services
            .iter()
            .filter_map(|s| Some((s.name.as_str(), s.own_unclaimed?.into())))
            .collect(),
        load_factor: outcome.load_factor.map(Interval::from),
        availability: outcome.availability.into(),
        goodput: outcome.goodput.into(),
        recovery_s: outcome.recovery.map(|Recovery { seconds, .. }| seconds.map(Interval::from)),
        recovered: outcome.recovery.map(|recovery| recovery.recovered),
        bad_keys: outcome.bad_keys.map(bad),
        stopped: outcome.stopped.map(|Stopped { direct, all }| Spared { direct, all }),
        attempts: outcome.attempts.into(),
        retries: outcome.retries.into(),
        suppressed: outcome.suppressed.into(),
        gated: outcome.gated.into(),
        denied: outcome.denied.into(),
        exact: outcome.exact.as_ref().map(|exact| ClosedForm {
            load: exact.load.iter().map(Ratio::to_string).collect(),
            availability: exact.availability.to_string(),
        }),
    }
}

fn bad(bad: BadKeys) -> Bad {
    Bad {
        load_factor: bad.load_factor.map(Interval::from),
        availability: bad.availability.map(Interval::from),
        others_availability: bad.others.map(Interval::from),
    }
}
