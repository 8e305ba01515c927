//! The families of the edges: calls, retries made and not made, evidence, budgets.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onus_core::{Arm, CalleeClaim, Claim, EdgeClass, EdgeOutcome, RetryCause, Stop, Timestamp};

use super::family::{Labels, Page};
use crate::agent::Agent;
use crate::counters::{Counter, Place};
use crate::edges::{Edge, EdgeKey};
use crate::symbols::Procedure;
use crate::wire::InvalidClaim;

pub(super) fn encode(agent: &Agent, now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    let rows: Vec<Row<'_>> = agent.edges().map(|edge| Row::new(agent, edge)).collect();
    calls(&rows, page)?;
    retries(&rows, page)?;
    retries_not_made(&rows, page)?;
    shadows(&rows, page)?;
    evidence(&rows, page)?;
    invalid_claims(&rows, page)?;
    let help = "Calls that went on after a failed call which the application repeats.";
    single(&rows, page, "onus_repeats", help, |edge| &edge.lasting.counters.repeats)?;
    let help = "Calls that could not be tied to the request they were made for.";
    single(&rows, page, "onus_untied_calls", help, |edge| &edge.lasting.counters.untied)?;
    classes(&rows, page)?;
    policies(&rows, page)?;
    budgets(&rows, now, page)?;
    gates_and_brakes(&rows, now, page)
}

struct Row<'a> {
    edge: Arc<Edge>,
    caller: &'a str,
    caller_method: String,
    callee: &'a str,
    callee_method: String,
}

impl<'a> Row<'a> {
    fn new(agent: &'a Agent, edge: Arc<Edge>) -> Self {
        let symbols = agent.symbols();
        let EdgeKey { caller, callee, procedure } = edge.key;
        Self {
            edge,
            caller: agent.service(),
            caller_method: caller.display(symbols).to_string(),
            callee: symbols.name(callee),
            callee_method: procedure.display(symbols).to_string(),
        }
    }

    fn labels(&self) -> Labels<'_, 4> {
        [
            ("caller", self.caller),
            ("caller_method", &self.caller_method),
            ("callee", self.callee),
            ("callee_method", &self.callee_method),
        ]
    }
}

fn calls(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Logical calls by their final outcome; attempts are not counted one by one.";
    let mut family = page.counters("onus_calls", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            let counters = row.edge.lasting.counters.arm(arm);
            for (outcome, counter) in [
                ("ok", &counters.ok),
                ("error", &counters.failed),
                ("abandoned", &counters.abandoned),
            ] {
                let own = [("outcome", outcome), ("arm", arm.as_str())];
                family.add(&(row.labels(), own), counter.get())?;
            }
        }
    }
    Ok(())
}

fn retries(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help =
        "Retries sent by Onus (made), and those of them that brought the answer (succeeded).";
    let mut family = page.counters("onus_retries", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            let counters = row.edge.lasting.counters.arm(arm);
            for cause in RetryCause::ALL {
                let expected = row.edge.policy.retry.is_some() && retry_occurs(arm, cause);
                for (verdict, counters) in
                    [("made", &counters.retries), ("succeeded", &counters.retries_ok)]
                {
                    let own =
                        [("verdict", verdict), ("cause", cause.as_str()), ("arm", arm.as_str())];
                    let count = counters[cause.place()].get();
                    family.add_if(expected, &(row.labels(), own), count)?;
                }
            }
        }
    }
    Ok(())
}

fn retries_not_made(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Failed calls by why no further attempt was made.";
    let mut family = page.counters("onus_retries_not_made", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            for stop in Stop::ALL {
                let own = [("reason", stop.as_str()), ("arm", arm.as_str())];
                let count = row.edge.lasting.counters.arm(arm).stops[stop.place()].get();
                let expected = stop_occurs(&row.edge, arm, stop);
                family.add_if(expected, &(row.labels(), own), count)?;
            }
        }
    }
    Ok(())
}

fn shadows(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Retries made that an enforcing caller would not have made, by its reason.";
    let mut family = page.counters("onus_shadow_suppressed", help)?;
    for row in rows {
        for &arm in Arm::ALL {
            for stop in Stop::ALL {
                let own = [("reason", stop.as_str()), ("arm", arm.as_str())];
                let count = row.edge.lasting.counters.arm(arm).shadows[stop.place()].get();
                let observing = matches!(arm, Arm::Observe | Arm::Control);
                let expected = observing
                    && row.edge.policy.retry.is_some()
                    && of_ownership(stop)
                    && stop_occurs(&row.edge, Arm::Enforce, stop);
                family.add_if(expected, &(row.labels(), own), count)?;
            }
        }
    }
    Ok(())
}

fn evidence(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Finished requests that called the edge, by what became of callee and caller; \
                isolated: no other edge to blame failed in the request.";
    let mut family = page.counters("onus_edge_requests", help)?;
    for row in rows {
        for (outcome, callee_outcome, isolated) in [
            (EdgeOutcome::Ok, "ok", "false"),
            (EdgeOutcome::FailedAlone, "error", "true"),
            (EdgeOutcome::FailedJointly, "error", "false"),
        ] {
            for (caller_failed, caller_outcome) in [(false, "ok"), (true, "error")] {
                let own = [
                    ("callee_outcome", callee_outcome),
                    ("caller_outcome", caller_outcome),
                    ("isolated", isolated),
                ];
                let count = row.edge.lasting.counters.evidence(outcome, caller_failed).get();
                // A call made for no request is evidence of nothing.
                let expected = row.edge.key.caller != Procedure::NONE;
                family.add_if(expected, &(row.labels(), own), count)?;
            }
        }
    }
    Ok(())
}

fn invalid_claims(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "Replies whose claim could not be read, and was taken as missing.";
    let mut family = page.counters("onus_invalid_claims", help)?;
    for row in rows {
        for why in InvalidClaim::ALL {
            let count = row.edge.lasting.counters.invalid_claims[why.place()].get();
            // The claims of strangers are not read.
            let expected = row.edge.policy.trusted;
            family.add_if(expected, &(row.labels(), [("reason", why.as_str())]), count)?;
        }
    }
    Ok(())
}

fn single(
    rows: &[Row<'_>],
    page: &mut Page<'_>,
    name: &'static str,
    help: &str,
    counter: impl Fn(&Edge) -> &Counter,
) -> fmt::Result {
    let mut family = page.counters(name, help)?;
    rows.iter().try_for_each(|row| family.add(&row.labels(), counter(&row.edge).get()))
}

fn classes(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "1 for the class of the edge that decisions use, 0 for the others.";
    let mut family = page.gauges("onus_edge_class", help)?;
    for row in rows {
        for class in [EdgeClass::FailClose, EdgeClass::FailOpen, EdgeClass::Unknown] {
            let is = f64::from(u8::from(row.edge.class() == class));
            family.add(&(row.labels(), [("class", class.as_str())]), is)?;
        }
    }
    Ok(())
}

fn policies(rows: &[Row<'_>], page: &mut Page<'_>) -> fmt::Result {
    let help = "The retries that may be made on the edge, and those of a layer below.";
    let mut family = page.infos("onus_retry_policy", help)?;
    for row in rows {
        let policy = row.edge.policy();
        let budget = policy.retry.and_then(|retry| retry.budget);
        let text = |count: u32| count.to_string();
        let flag = |is: bool| if is { "true" } else { "false" };
        let own = [
            ("attempts", &*text(policy.retry.map_or(1, |retry| retry.attempts()))),
            ("budget_percent", &*budget.map_or_else(|| "none".to_owned(), |it| text(it.percent))),
            ("budget_min_per_second", &*text(budget.map_or(0, |it| it.min_per_second))),
            ("declared_attempts", &*text(policy.declared.map_or(0, |it| it.attempts))),
            ("foreign_retries", flag(row.edge.has_foreign_retries())),
            ("unsafe_methods", flag(row.edge.retries_unsafe_methods())),
        ];
        family.add(&(row.labels(), own))?;
    }
    Ok(())
}

fn budgets(rows: &[Row<'_>], now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    let help = "Whole retries that the budget of the edge would pay for at once.";
    let mut family = page.gauges("onus_budget_balance", help)?;
    for row in rows {
        if let Some(budget) = &row.edge.memory(now).state.budget {
            family.add(&row.labels(), budget.balance(now) as f64)?;
        }
    }
    // [budget-10]
    let help = "The most requests per call in the long run, by policy, budget and measured rate.";
    let mut family = page.gauges("onus_budget_bound_ratio", help)?;
    for row in rows {
        if let Some(bound) = bound(&row.edge, now) {
            family.add(&row.labels(), bound)?;
        }
    }
    Ok(())
}

fn gates_and_brakes(rows: &[Row<'_>], now: Timestamp, page: &mut Page<'_>) -> fmt::Result {
    let help = "The share of the edge's retries that succeed, as its efficacy gate sees it.";
    let mut family = page.gauges("onus_gate_efficacy_ratio", help)?;
    for row in rows {
        if row.edge.policy.retry.is_some_and(|retry| retry.gate) {
            let efficacy = row.edge.memory(now).state.gate.efficacy_permille();
            family.add(&row.labels(), f64::from(efficacy) / 1000.0)?;
        }
    }
    let help = "How often the brake has halved the enforce share of the edge.";
    let mut family = page.gauges("onus_brake_halvings", help)?;
    for row in rows {
        if row.edge.policy.retry.is_some_and(|retry| retry.probes) {
            family.add(&row.labels(), row.edge.lasting.halvings.load(Ordering::Relaxed).into())?;
        }
    }
    Ok(())
}

/// 1 + percent/100 + floor/rps, and never more than the policy's attempts; `None` without a
/// policy. The rate is the mean since the edge was first used.
fn bound(edge: &Edge, now: Timestamp) -> Option<f64> {
    let retry = edge.policy.retry?;
    let attempts = f64::from(retry.attempts());
    let Some(budget) = retry.budget else { return Some(attempts) };
    // Less than a second says nothing about a rate.
    let seconds = now.saturating_since(edge.lasting.since).as_secs_f64().max(1.0);
    let floor = match budget.min_per_second {
        0 => 0.0,
        // Infinite without calls: then the attempts are the bound.
        floor => f64::from(floor) * seconds / edge.lasting.tally.calls() as f64,
    };
    Some((1.0 + f64::from(budget.percent) / 100.0 + floor).min(attempts))
}

/// Whether a caller in this arm can make a retry for this cause.
fn retry_occurs(arm: Arm, cause: RetryCause) -> bool {
    match cause {
        RetryCause::Claim(CalleeClaim::Missing | CalleeClaim::Silent) => true,
        RetryCause::Claim(CalleeClaim::Reply(Claim::Claimed | Claim::ClaimedSilent)) => {
            !arm.is_off()
        }
        RetryCause::Claim(CalleeClaim::Reply(Claim::Unclaimed)) => {
            matches!(arm, Arm::Observe | Arm::Control)
        }
        // A shield stops in every arm that reads it.
        RetryCause::Claim(CalleeClaim::Reply(Claim::UnclaimedShield)) => false,
        RetryCause::Probe => arm == Arm::Enforce,
    }
}

/// Whether a call on this edge in this arm can end for this reason.
fn stop_occurs(edge: &Edge, arm: Arm, stop: Stop) -> bool {
    let retry = edge.policy.retry;
    match stop {
        Stop::Suppressed => !arm.is_off() && edge.policy.trusted,
        Stop::Pushback | Stop::NotConfigured | Stop::NoTime => true,
        Stop::Marked => arm == Arm::Enforce && retry.is_some(),
        Stop::NotReplayable | Stop::Exhausted => retry.is_some(),
        Stop::Gated => arm == Arm::Enforce && retry.is_some_and(|retry| retry.gate),
        Stop::BudgetDenied => retry.is_some_and(|retry| retry.budget.is_some()),
    }
}

/// The rows of the decision table that an observing caller passes over.
fn of_ownership(stop: Stop) -> bool {
    match stop {
        Stop::Suppressed | Stop::Marked | Stop::Gated => true,
        Stop::Pushback
        | Stop::NotConfigured
        | Stop::NotReplayable
        | Stop::Exhausted
        | Stop::NoTime
        | Stop::BudgetDenied => false,
    }
}
