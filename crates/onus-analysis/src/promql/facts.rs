//! What agents are doing and may retry, as the store has it: facts and not counts.

use std::collections::BTreeMap;

use onus_api::{EdgePolicyFacts, ServiceFacts};
use onus_promql::Sample;

/// A recording rule, and how the same is asked for without it, of series that match.
type Query = (&'static str, fn(&str) -> String);

/// All that is asked for.
pub(super) const QUERIES: [Query; 6] = [
    ("onus:mode:max", |matching| format!("max by (service, mode) (onus_mode{matching})")),
    ("onus:enforce_share:min", |matching| {
        format!("min by (service) (onus_enforce_share_ratio{matching})")
    }),
    ("onus:shield_seconds_left:max", |matching| {
        format!("max by (service) (onus_shield_seconds_left{matching})")
    }),
    ("onus:processes:count", |matching| {
        format!("count by (service) (onus_enforce_share_ratio{matching})")
    }),
    ("onus:retry_policy:max", |matching| {
        format!(
            "max by (caller, caller_method, callee, callee_method, attempts, budget_percent, \
             budget_min_per_second, declared_attempts, foreign_retries, unsafe_methods) \
             (onus_retry_policy_info{matching})"
        )
    }),
    ("onus:budget_balance:min", |matching| {
        format!(
            "min by (caller, caller_method, callee, callee_method) (onus_budget_balance{matching})"
        )
    }),
];

/// Whether the query of this place is of services, and not of edges.
pub(super) const fn is_of_services(place: usize) -> bool {
    place < 4
}

/// The facts of a page of callers.
#[derive(Default)]
pub(super) struct Facts {
    pub(super) services: BTreeMap<String, ServiceFacts>,
    pub(super) edges: BTreeMap<[String; 4], EdgePolicyFacts>,
}

impl Facts {
    /// Takes in the answer to the query of this place.
    pub(super) fn take(&mut self, place: usize, answer: &[Sample]) {
        for sample in answer.iter().filter(|sample| sample.value.is_finite()) {
            if is_of_services(place) {
                let service = sample.label("service").to_owned();
                take_service(self.services.entry(service).or_default(), place, sample);
                continue;
            }
            let name = ["caller", "caller_method", "callee", "callee_method"];
            let name = name.map(|label| sample.label(label).to_owned());
            // A balance alone does not tell a policy.
            let unknown = EdgePolicyFacts { unknown: true, ..EdgePolicyFacts::default() };
            let edge = self.edges.entry(name).or_insert(unknown);
            if place == 4 {
                take_policy(edge, sample);
            } else {
                edge.budget_balance = Some(sample.value.max(0.0) as u64);
            }
        }
    }
}

fn take_service(facts: &mut ServiceFacts, place: usize, sample: &Sample) {
    match place {
        // Where processes differ the least of them counts: ownership reaches no farther.
        0 if sample.value > 0.0 => {
            let order = ["off", "observe", "enforce"];
            let rank = |mode: &str| order.iter().position(|it| *it == mode);
            let mode = sample.label("mode");
            if facts.mode.is_empty() || rank(mode) < rank(&facts.mode) {
                mode.clone_into(&mut facts.mode);
            }
        }
        1 => facts.enforce_percent = (sample.value * 100.0).round().clamp(0.0, 100.0) as u8,
        3 => facts.processes = Some(sample.value.max(0.0) as u64),
        2 => facts.shield_left_seconds = sample.value.max(0.0) as u64,
        _ => {}
    }
}

/// Where processes differ, as in a roll-out, the most that any of them may do counts.
fn take_policy(edge: &mut EdgePolicyFacts, sample: &Sample) {
    let number = |label: &str| sample.label(label).parse::<u32>().unwrap_or(0);
    let is = |label: &str| sample.label(label) == "true";
    let most = edge.unknown || number("attempts") > edge.attempts;
    edge.foreign_retries |= is("foreign_retries");
    edge.unsafe_methods |= is("unsafe_methods");
    edge.declared_attempts = edge.declared_attempts.max(number("declared_attempts"));
    if most {
        edge.attempts = number("attempts");
        edge.budget_percent = sample.label("budget_percent").parse().ok();
        edge.budget_min_per_second = number("budget_min_per_second");
    }
    edge.unknown = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(labels: &[(&str, &str)], value: f64) -> Sample {
        let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Sample { labels: labels.collect(), at: 0.0, value }
    }

    #[test]
    fn where_processes_differ_ownership_reaches_as_far_as_in_the_least() {
        let mut facts = Facts::default();
        let mode = |mode, value| sample(&[("service", "a"), ("mode", mode)], value);
        facts.take(0, &[mode("enforce", 1.0), mode("observe", 1.0), mode("off", 0.0)]);
        facts.take(1, &[sample(&[("service", "a")], 0.25)]);
        facts.take(2, &[sample(&[("service", "a")], 90.0)]);
        let of_a = &facts.services["a"];
        assert_eq!(
            (&*of_a.mode, of_a.enforce_percent, of_a.shield_left_seconds),
            ("observe", 25, 90)
        );
    }

    #[test]
    fn a_policy_is_the_most_that_any_process_may_do_and_unknown_without_its_series() {
        let edge = [("caller", "a"), ("callee", "b")];
        let policy = |attempts, foreign| {
            let own = [
                ("attempts", attempts),
                ("budget_percent", if attempts == "3" { "10" } else { "none" }),
                ("declared_attempts", "0"),
                ("foreign_retries", foreign),
                ("unsafe_methods", "false"),
            ];
            sample(&[&edge[..], &own[..]].concat(), 1.0)
        };
        let mut facts = Facts::default();
        facts.take(5, &[sample(&edge, 2.0), sample(&[("caller", "a"), ("callee", "c")], 1.0)]);
        facts.take(4, &[policy("2", "true"), policy("3", "false")]);
        let name = |callee: &str| [String::from("a"), String::new(), callee.into(), String::new()];
        let known = &facts.edges[&name("b")];
        assert_eq!(
            (known.attempts, known.budget_percent, known.budget_balance),
            (3, Some(10), Some(2))
        );
        assert!(known.foreign_retries && !known.unknown && !known.unsafe_methods);
        assert!(facts.edges[&name("c")].unknown);
    }
}
