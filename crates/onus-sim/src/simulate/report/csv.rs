//! One line for each policy and service.

use std::fmt::Write;

use crate::simulate::experiment::Experiment;
use crate::simulate::outcome::Estimate;

/// The experiment as CSV: a line for each policy, value of the sweep, and service.
#[must_use]
pub fn csv(experiment: &Experiment) -> String {
    let mut text = String::from(
        "policy,value,partial,seeds,service,depth,handled,per_request,per_request_half_width,\
         load_factor,load_factor_half_width,availability,availability_half_width,recovery_s\n",
    );
    for outcome in &experiment.outcomes {
        let [load, load_off] = pair(outcome.load_factor);
        let [ok, ok_off] = pair(Some(outcome.availability));
        let recovery = outcome.recovery.and_then(|recovery| recovery.seconds);
        let [recovery, _] = pair(recovery);
        let value = outcome.value.map(|value| value.to_string()).unwrap_or_default();
        let policy = quoted(&outcome.policy);
        for service in &outcome.services {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{policy},{value},{},{},{},{},{},{},{},{load},{load_off},{ok},{ok_off},{recovery}",
                experiment.partial,
                outcome.runs,
                quoted(&service.name),
                service.depth,
                service.handled.mean,
                service.per_request.mean,
                service.per_request.half_width,
            );
        }
    }
    text
}

fn pair(estimate: Option<Estimate>) -> [String; 2] {
    estimate.map_or_else(Default::default, |estimate| {
        [estimate.mean.to_string(), estimate.half_width.to_string()]
    })
}

/// A field that may hold commas and quotes (RFC 4180).
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
