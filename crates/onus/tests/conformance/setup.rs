//! The service of a step vector, configured as a service author would.

use std::collections::BTreeMap;
use std::time::Duration;

use onus::{
    AttemptError, EdgeClass, ErrorSet, Onus, OnusBuilder, OutboundService, RetryPolicy, outbound,
};
use onus_conformance::step::{DepositName, Edge, Failed, PushbackSetup, Step};
use onus_conformance::{ErrorName, StepVector, Unsupported};
use tower::Layer;

use super::callee::{Callee, Lost};

pub(super) type Client = OutboundService<Callee, Kind>;

/// The kind of a loss is the loss's own.
#[derive(Clone, Copy)]
pub(super) struct Kind;

impl outbound::ClassifyError<Lost> for Kind {
    fn classify(&self, lost: &Lost) -> AttemptError {
        lost.0
    }
}

/// A body that is longer than this cannot be sent again.
const BODY_MAX: usize = 16;

/// The service's Onus.
pub(super) fn onus(vector: &StepVector) -> Result<Onus, Unsupported> {
    let mode = vector.service.mode();
    let mut builder = Onus::builder("service").mode(mode).replay_limits(BODY_MAX, 1 << 20);
    if vector.service.silent_claims {
        builder = builder.silent_claims();
    }
    for (callee, edge) in &vector.edges {
        builder = configure(builder, callee, edge);
    }
    builder.build().map_err(|error| format!("is refused: {error}").into())
}

/// A client of each callee.
pub(super) fn clients(onus: &Onus, vector: &StepVector) -> BTreeMap<String, (Client, Callee)> {
    let client = |name: &String| {
        let callee = Callee::default();
        let layer = onus.outbound(name).classify_errors(Kind);
        (name.clone(), (layer.layer(callee.clone()), callee))
    };
    vector.edges.keys().map(client).collect()
}

fn configure(builder: OnusBuilder, callee: &str, edge: &Edge) -> OnusBuilder {
    let mut builder = match policy(edge) {
        Some(policy) => builder.retry(callee, policy),
        None => builder,
    };
    if let Some(declared) = &edge.declared {
        let errors = errors(declared.errors.as_ref());
        builder = builder.declared_retries(callee, declared.attempts, errors);
    }
    if !edge.trusted {
        builder = builder.untrusted(callee);
    }
    if edge.brake_acts {
        builder = builder.brake_acts(callee);
    }
    match edge.class {
        EdgeClass::Unknown => builder,
        class @ (EdgeClass::FailClose | EdgeClass::FailOpen) => {
            builder.override_class(callee, class)
        }
    }
}

fn policy(edge: &Edge) -> Option<RetryPolicy> {
    if edge.attempts < 2 {
        return None;
    }
    let mut policy = RetryPolicy::articles(edge.attempts)
        .errors(errors(edge.errors.as_ref()))
        .min_attempt_time(edge.min_attempt_time.0)
        .backoff(edge.backoff.base.0, edge.backoff.max.0);
    policy = match &edge.budget {
        None => policy.no_budget(),
        Some(budget) => {
            let policy = policy
                .budget_percent(budget.percent)
                .budget_min_per_second(budget.min_per_second)
                .budget_ttl(Duration::from_secs(budget.ttl.get().into()));
            match budget.deposit {
                DepositName::Request => policy,
                DepositName::Success => policy.budget_from_successes(),
            }
        }
    };
    if edge.unsafe_methods {
        policy = policy.unsafe_methods();
    }
    if edge.gate {
        policy = policy.gate();
    }
    if !edge.probes {
        policy = policy.no_probes();
    }
    if edge.declared.is_some() {
        policy = policy.stacked();
    }
    Some(policy)
}

fn errors(names: Option<&Vec<ErrorName>>) -> ErrorSet {
    names.map_or(ErrorSet::FAILURES, |names| names.iter().map(|name| name.0).collect())
}

/// What a vector does to calls later, which has to be known when they start.
#[derive(Default)]
pub(super) struct Foreseen {
    /// The calls that cannot be sent again.
    pub(super) unreplayable: Vec<String>,
    /// The calls whose answers break after their heads.
    pub(super) breaking: Vec<String>,
}

impl Foreseen {
    pub(super) fn in_vector(vector: &StepVector) -> Self {
        let (mut foreseen, mut answered, mut latest) = (Self::default(), Vec::new(), "");
        for step in &vector.steps {
            if let Step::Call(call) = step {
                latest = call.name();
            } else if let Step::Ok(step) = step {
                answered.push(step.call.as_deref().unwrap_or(latest));
            } else if let Step::Failed(Failed { call, replayable, .. }) = step {
                let name = call.as_deref().unwrap_or(latest);
                if answered.contains(&name) {
                    foreseen.breaking.push(name.to_owned());
                } else if !replayable {
                    foreseen.unreplayable.push(name.to_owned());
                }
            }
        }
        foreseen
    }
}

/// A body for a call.
pub(super) fn body(replayable: bool) -> crate::cast::Pieces {
    match replayable {
        true => crate::cast::Pieces::empty(),
        false => crate::cast::Pieces::sized(vec![b'x'; BODY_MAX + 1]),
    }
}

/// What `grpc-retry-pushback-ms` says, of any protocol.
pub(super) fn pushback(pushback: PushbackSetup) -> Option<String> {
    match pushback {
        PushbackSetup::None => None,
        PushbackSetup::Refused => Some("-1".to_owned()),
        PushbackSetup::After(wait) => Some(wait.0.as_millis().to_string()),
    }
}
