//! What the names of policies mean.

use onus_core::{Deposit, RetryPolicy};

use super::{Claims, Kind, Policy, Scope, Shipped, budget};
use crate::file_error::{Fault, at, overall};
use crate::simulate::graph::Graph;
use crate::simulate::rivals::RivalKind;
use crate::simulate::scenario::{PolicyName, PolicyOptions};

/// The policy that the options describe; `faulty` are the services with faults.
pub(crate) fn resolve(
    options: &PolicyOptions,
    attempts: u32,
    graph: &Graph,
    faulty: &[usize],
) -> Result<Policy, Fault> {
    let attempts = options.attempts.unwrap_or(attempts);
    let kind = match rival(options, attempts) {
        Some(rival) => Kind::Rival(rival),
        None => Kind::Shipped(adjusted(shipped(options.policy, attempts), options)),
    };
    if let (Kind::Rival(_), Some(setting)) = (kind, shipped_only(options)) {
        let name = options.policy.as_str();
        return Err(overall(format!(
            "`{setting}` cannot be set for {name}; allowed are name, attempts, into, percent, floor"
        )));
    }
    let scope = match (&options.into, options.policy) {
        (Some(names), _) => {
            let find = |name: &serde_saphyr::Spanned<String>| {
                let known = graph.find(&name.value);
                known.ok_or_else(|| at(name, format!("`{}` is no service", name.value)))
            };
            Scope::Into(names.iter().map(find).collect::<Result<_, _>>()?)
        }
        (None, PolicyName::TopOnly) => Scope::Top,
        (None, PolicyName::DirectOnly) => Scope::Into(faulty.to_vec()),
        (None, _) => Scope::All,
    };
    let name = options.name.clone().unwrap_or_else(|| options.policy.as_str().to_owned());
    Ok(Policy { name, scope, kind })
}

fn rival(options: &PolicyOptions, attempts: u32) -> Option<RivalKind> {
    let percent = options.percent.unwrap_or(20);
    match options.policy {
        PolicyName::GrpcThrottling => Some(RivalKind::GrpcThrottling { attempts }),
        PolicyName::IstioGrpc => Some(RivalKind::IstioGrpc),
        PolicyName::IstioHttp => Some(RivalKind::IstioHttp),
        PolicyName::IstioBudget => Some(RivalKind::IstioBudget { attempts, percent }),
        PolicyName::Linkerd => {
            Some(RivalKind::Linkerd { percent, floor: options.floor.unwrap_or(10) })
        }
        PolicyName::Bytedance => Some(RivalKind::Bytedance { attempts }),
        PolicyName::None
        | PolicyName::Everywhere
        | PolicyName::TopOnly
        | PolicyName::DirectOnly
        | PolicyName::BudgetPerRequest
        | PolicyName::BudgetPerSuccess
        | PolicyName::Gate
        | PolicyName::MarkOnly
        | PolicyName::PlainMatrix
        | PolicyName::Ownership
        | PolicyName::OwnershipMark
        | PolicyName::OwnershipGate
        | PolicyName::OwnershipBudget
        | PolicyName::Articles
        | PolicyName::Recommended => None,
    }
}

/// The settings behind a name. Rivals are answered by [`rival`] and do not come here.
fn shipped(name: PolicyName, attempts: u32) -> Shipped {
    let off = Shipped {
        attempts,
        owns: false,
        claims: Claims::Shipped,
        mark: false,
        budget: None,
        gate: false,
        probes: false,
        silent_claims: false,
    };
    let owns = Shipped { owns: true, ..off };
    let per_request = Some(budget(10, Deposit::Request, 0));
    match name {
        PolicyName::None => Shipped { attempts: 1, ..off },
        PolicyName::Everywhere
        | PolicyName::TopOnly
        | PolicyName::DirectOnly
        | PolicyName::GrpcThrottling
        | PolicyName::IstioGrpc
        | PolicyName::IstioHttp
        | PolicyName::IstioBudget
        | PolicyName::Linkerd
        | PolicyName::Bytedance => off,
        PolicyName::BudgetPerRequest => Shipped { budget: per_request, ..off },
        PolicyName::BudgetPerSuccess => {
            Shipped { budget: Some(budget(10, Deposit::Success, 0)), ..off }
        }
        PolicyName::Gate => Shipped { claims: Claims::None, gate: true, ..owns },
        PolicyName::MarkOnly => Shipped { claims: Claims::None, mark: true, ..owns },
        PolicyName::PlainMatrix => Shipped { claims: Claims::PlainMatrix, ..owns },
        PolicyName::Ownership => owns,
        PolicyName::OwnershipMark => Shipped { mark: true, ..owns },
        PolicyName::OwnershipGate => Shipped { gate: true, ..owns },
        PolicyName::OwnershipBudget => Shipped { budget: per_request, ..owns },
        PolicyName::Articles => preset(owns, RetryPolicy::articles(attempts)),
        PolicyName::Recommended => Shipped {
            silent_claims: true,
            ..preset(owns, RetryPolicy::new(RetryPolicy::RECOMMENDED_ATTEMPTS))
        },
    }
}

/// A preset of the core, with the mark. No policy is no retry.
fn preset(owns: Shipped, policy: Option<RetryPolicy>) -> Shipped {
    let Some(policy) = policy else { return Shipped { attempts: 1, mark: true, ..owns } };
    Shipped {
        attempts: policy.attempts(),
        budget: policy.budget,
        mark: true,
        gate: policy.gate,
        probes: policy.probes,
        ..owns
    }
}

/// The settings with what the options change. A percentage gives a policy a budget.
fn adjusted(mut shipped: Shipped, options: &PolicyOptions) -> Shipped {
    if let (Some(attempts), PolicyName::Recommended) = (options.attempts, options.policy) {
        shipped.attempts = attempts;
    }
    if options.percent.is_some() || options.deposit.is_some() || options.floor.is_some() {
        let base = shipped.budget.unwrap_or_else(|| budget(10, Deposit::Request, 0));
        shipped.budget = Some(budget(
            options.percent.unwrap_or(base.percent),
            options.deposit.map_or(base.deposit, Deposit::from),
            options.floor.unwrap_or(base.min_per_second),
        ));
    }
    shipped.gate = options.gate.unwrap_or(shipped.gate);
    shipped.mark = options.mark.unwrap_or(shipped.mark);
    shipped.probes = options.probes.unwrap_or(shipped.probes);
    shipped.silent_claims = options.silent_claims.unwrap_or(shipped.silent_claims);
    shipped
}

/// A setting that only the shipped code has.
fn shipped_only(options: &PolicyOptions) -> Option<&'static str> {
    let set = [
        ("deposit", options.deposit.is_some()),
        ("gate", options.gate.is_some()),
        ("mark", options.mark.is_some()),
        ("probes", options.probes.is_some()),
        ("silent-claims", options.silent_claims.is_some()),
    ];
    set.into_iter().find(|(_, set)| *set).map(|(name, _)| name)
}
