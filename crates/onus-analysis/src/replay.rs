//! What the last hour would have been under other overrides.
//!
//! Only fail-open changes what a service says (protocol §9): of a request that failed together with
//! a fail-open edge alone, the error is the caller's own, and its callers may retry it. Behind any
//! other class the edge is blamed, and where a retry was made or refused its callers are told not
//! to. Both counts are of requests that failed; how often the callers would have retried follows
//! from their policies, and is the most that they allow.

use std::collections::HashMap;

use onus_api::{EdgeCounts, Range, ReplayedEdge};
use onus_core::EdgeClass;

use crate::book::{Book, EdgeRow, ProcedureKey};
use crate::clock::Millis;
use crate::overrides::Overrides;
use crate::window::WindowKey;

/// How many minutes are replayed.
pub(crate) const MINUTES: u32 = 60;

/// The edges whose class would change, and what would have been different in these minutes.
pub(crate) fn replay(
    book: &Book,
    overrides: &Overrides,
    windows: &[(WindowKey, EdgeCounts)],
    now: Millis,
) -> Vec<ReplayedEdge> {
    let mut counts: HashMap<u32, EdgeCounts> = HashMap::new();
    for (key, minute) in windows {
        let sum = counts.entry(key.edge).or_default();
        *sum = sum.plus(*minute);
    }
    let callers = Callers::of(book, &counts);
    let changed = book.edges_by_id().filter_map(|(id, row)| {
        let before = book.class(row, now);
        let learned = row.told.class.edge_class();
        let after = overrides.word(row.key, now).map_or(learned, |word| word.class);
        if before == after {
            return None;
        }
        let counts = counts.get(&id).copied().unwrap_or_default();
        Some(edge(book, row, [before, after], counts, &callers))
    });
    let mut edges: Vec<_> = changed.collect();
    edges.sort_by(|one, other| {
        let name = |it: &ReplayedEdge| {
            (
                it.caller.clone(),
                it.callee.clone(),
                it.caller_procedure.clone(),
                it.procedure.clone(),
            )
        };
        other.failures.cmp(&one.failures).then_with(|| name(one).cmp(&name(other)))
    });
    edges
}

fn edge(
    book: &Book,
    row: &EdgeRow,
    [before, after]: [EdgeClass; 2],
    counts: EdgeCounts,
    callers: &Callers,
) -> ReplayedEdge {
    let key = row.key;
    let name = |name| book.names.name(name).to_string();
    let changed = changed_claims(row, &counts);
    let caller = ProcedureKey { service: key.caller, procedure: key.caller_procedure };
    let (mut claimed, mut unclaimed) = (Range::default(), Range::default());
    let (mut retried, mut suppressed) = (0, 0);
    match (before == EdgeClass::FailOpen, after == EdgeClass::FailOpen) {
        // Nothing but fail-open changes a claim.
        (true, true) | (false, false) => {}
        (false, true) => {
            claimed = changed;
            retried = callers.retries_of_calls(caller, changed.most);
        }
        (true, false) => {
            unclaimed = changed;
            suppressed = callers.retries_of_attempts(caller, changed.most);
        }
    }
    ReplayedEdge {
        caller: name(key.caller),
        caller_procedure: name(key.caller_procedure),
        callee: name(key.callee),
        procedure: name(key.procedure),
        before: before.into(),
        after: after.into(),
        failures: counts.failures(),
        claimed,
        unclaimed,
        retried,
        suppressed,
    }
}

/// The errors that say something else where the edge is fail-open and where it is not: at least
/// those in which nothing else failed, at most all, other failed edges being fail-open as well.
fn changed_claims(row: &EdgeRow, counts: &EdgeCounts) -> Range {
    let met = [
        counts.suppressed,
        counts.marked,
        counts.gated,
        counts.budget_denied,
        counts.pushed_back,
        counts.exhausted,
    ];
    let met: u64 = met.iter().sum();
    // One attempt that could not be repeated leaves the retry to the callers in any case.
    let open = counts.not_configured + counts.not_replayable + counts.no_time;
    let open = if row.policy.declared_attempts >= 2 { 0 } else { open };
    let share = match met + open {
        0 => 1.0,
        all => (all - open) as f64 / all as f64,
    };
    let of = |errors: u64| (errors as f64 * share).round() as u64;
    let certain = counts.alone_caller_failed;
    let most = certain + counts.jointly_caller_failed;
    Range { least: of(certain), most: of(most) }
}

/// How often those who call a procedure retry it, by their share of its failed calls.
struct Callers(HashMap<ProcedureKey, Weighed>);

#[derive(Default)]
struct Weighed {
    failed: f64,
    /// Retries for each call that is told that a retry is open, weighed by failed calls.
    of_calls: f64,
    /// Retries for each attempt, the same.
    of_attempts: f64,
}

impl Callers {
    fn of(book: &Book, counts: &HashMap<u32, EdgeCounts>) -> Self {
        let mut enforcing: HashMap<_, (f64, f64)> = HashMap::new();
        for (_, instance) in book.instances() {
            let (percents, all) = enforcing.entry(instance.service).or_default();
            *all += 1.0;
            if instance.facts.mode == "enforce" {
                *percents += f64::from(instance.facts.enforce_percent) / 100.0;
            }
        }
        let mut callers: HashMap<_, Weighed> = HashMap::new();
        for (&id, counts) in counts {
            let Some(row) = book.edge(id) else { continue };
            let called = ProcedureKey { service: row.key.callee, procedure: row.key.procedure };
            let failed = counts.calls_failed as f64;
            let attempts = f64::from(row.policy.attempts.max(1));
            // Whoever only observes retries whatever it is told.
            let share = enforcing.get(&row.key.caller).map_or(0.0, |(sum, all)| sum / all);
            let weighed = callers.entry(called).or_default();
            weighed.failed += failed;
            weighed.of_calls += failed * share * (attempts - 1.0);
            weighed.of_attempts += failed * share * (attempts - 1.0) / attempts;
        }
        Self(callers)
    }

    /// The retries of calls that got this error once, and were not retried.
    fn retries_of_calls(&self, of: ProcedureKey, errors: u64) -> u64 {
        self.retries(of, errors, |weighed| weighed.of_calls)
    }

    /// The retries among attempts that all got this error.
    fn retries_of_attempts(&self, of: ProcedureKey, errors: u64) -> u64 {
        self.retries(of, errors, |weighed| weighed.of_attempts)
    }

    fn retries(&self, of: ProcedureKey, errors: u64, each: fn(&Weighed) -> f64) -> u64 {
        let weighed = self.0.get(&of).filter(|weighed| weighed.failed > 0.0);
        weighed.map_or(0, |it| (errors as f64 * each(it) / it.failed).round() as u64)
    }
}

#[cfg(test)]
mod tests {
    use onus_api::{
        EdgeDelta, EdgePolicyFacts, OverrideRequest, OverrideSource, Report, ServiceFacts,
    };

    use super::*;
    use crate::config::Limits;
    use crate::orders::Change;

    const NOW: Millis = Millis(60_000_000);

    fn report(service: &str, percent: u8, callee: &str, counts: EdgeCounts) -> Report {
        let mode = if percent > 0 { "enforce" } else { "observe" };
        Report {
            schema_version: 1,
            service: service.to_owned(),
            instance: "1".to_owned(),
            sequence: 1,
            at: NOW.0,
            facts: ServiceFacts {
                mode: mode.to_owned(),
                enforce_percent: percent,
                ..ServiceFacts::default()
            },
            edges: vec![EdgeDelta {
                caller_procedure: "GET /".to_owned(),
                callee: callee.to_owned(),
                procedure: "GET /".to_owned(),
                policy: EdgePolicyFacts { attempts: 3, ..EdgePolicyFacts::default() },
                counts,
            }],
            procedures: Vec::new(),
        }
    }

    fn class(class: &str) -> Overrides {
        let mut overrides = Overrides::default();
        let request = OverrideRequest {
            caller: "b".to_owned(),
            callee: "c".to_owned(),
            class: class.to_owned(),
            owner: "alice".to_owned(),
            reason: "known".to_owned(),
            for_seconds: Some(60),
            ..OverrideRequest::default()
        };
        overrides.set(Overrides::checked(request, OverrideSource::Api, NOW).unwrap());
        overrides
    }

    #[test]
    fn the_last_hour_is_told_as_it_would_have_been() {
        // A → B → C: 100 requests to B failed with C alone, 20 more with others beside it.
        let failed = EdgeCounts {
            alone_caller_failed: 100,
            jointly_caller_failed: 20,
            calls_failed: 120,
            exhausted: 60,
            no_time: 60,
            ..EdgeCounts::default()
        };
        let calls = EdgeCounts { calls_failed: 100, ..EdgeCounts::default() };
        // The class that holds, the one that is tried, the share that A enforces; what B claims,
        // and what A does about it. Half of the errors were open in any case.
        let none = Range::default();
        let half = Range { least: 50, most: 60 };
        for (holds, tried, percent, claimed, unclaimed, retried, suppressed) in [
            ("fail-close", "fail-open", 100, half, none, 120, 0),
            ("fail-close", "fail-open", 50, half, none, 60, 0),
            ("fail-close", "fail-open", 0, half, none, 0, 0),
            ("fail-open", "fail-close", 100, none, half, 0, 40),
            ("fail-open", "unknown", 100, none, half, 0, 40),
            ("fail-close", "unknown", 100, none, none, 0, 0),
        ] {
            let mut book = Book::new(Limits::default(), NOW);
            book.apply(&report("a", percent, "b", calls), NOW);
            book.apply(&report("b", 100, "c", failed), NOW);
            let holding: Vec<_> = class(holds).iter().cloned().map(Change::SetOverride).collect();
            book.change(&holding);
            let windows: Vec<_> =
                book.windows.iter().map(|(&key, &counts)| (key, counts)).collect();
            let mut overrides = class(tried);
            overrides.index(|name| book.names.find(name));
            let edges = replay(&book, &overrides, &windows, NOW);
            assert_eq!(edges.len(), 1, "{holds} {tried}");
            let edge = &edges[0];
            assert_eq!((edge.before.as_str(), edge.after.as_str()), (holds, tried));
            assert_eq!(edge.failures, 120);
            let told = (edge.claimed, edge.unclaimed, edge.retried, edge.suppressed);
            assert_eq!(
                told,
                (claimed, unclaimed, retried, suppressed),
                "{holds} {tried} {percent}"
            );
            overrides = class(holds);
            overrides.index(|name| book.names.find(name));
            assert_eq!(replay(&book, &overrides, &windows, NOW), [], "nothing changes");
        }
    }
}
