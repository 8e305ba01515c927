//! Onus's own series, where it runs already.

use onus_graph::Coverage;
use onus_promql::Sample;
use onus_retry_config::Service;

use super::{About, Metrics, Question};
use crate::edges::Class;

pub(super) fn questions(window: &str) -> Vec<Question> {
    let increase =
        |by: &str, selector: &str| format!("sum by ({by}) (increase({selector}[{window}]))");
    vec![
        Question {
            about: About::OnusCalls,
            promql: increase("caller, callee, outcome", "onus_calls_total"),
        },
        Question {
            about: About::OnusRetries,
            promql: increase("caller, callee", "onus_retries_total{verdict=\"made\"}"),
        },
        Question {
            about: About::OnusClasses,
            promql: "max by (caller, caller_method, callee, callee_method, class) \
                     (onus_edge_class) == 1"
                .to_owned(),
        },
        Question {
            about: About::OnusModes,
            promql: "max by (service, mode) (onus_mode) == 1".to_owned(),
        },
    ]
}

pub(super) fn take(metrics: &mut Metrics, about: About, sample: &Sample) {
    let service = |label| Service::new(sample.label(label), None);
    if about == About::OnusModes {
        let coverage = match sample.label("mode") {
            "enforce" => Coverage::Enforcing,
            "observe" => Coverage::Observing,
            _ => Coverage::NonCooperative,
        };
        // Instances that disagree are taken for the one that does less.
        let known = metrics.coverage.entry(service("service")).or_insert(coverage);
        if rank(coverage) < rank(*known) {
            *known = coverage;
        }
        return;
    }
    let edge = metrics.edge(service("caller"), service("callee"));
    match about {
        About::OnusCalls => {
            edge.calls += sample.value;
            edge.failures += if sample.label("outcome") == "error" { sample.value } else { 0.0 };
        }
        About::OnusRetries => *edge.retries.get_or_insert(0.0) += sample.value,
        About::OnusClasses => edge.is_of(match sample.label("class") {
            "fail-open" => Class::FailOpen,
            "fail-close" => Class::FailClose,
            _ => Class::Unknown,
        }),
        About::IstioRequests
        | About::IstioFailures
        | About::LinkerdResponses
        | About::LinkerdRouteCalls
        | About::LinkerdRouteAttempts
        | About::LinkerdCalls
        | About::LinkerdRetries
        | About::OnusModes => {}
    }
}

const fn rank(coverage: Coverage) -> u8 {
    match coverage {
        Coverage::NonCooperative => 0,
        Coverage::ContextLost => 1,
        Coverage::Observing => 2,
        Coverage::Enforcing => 3,
    }
}
