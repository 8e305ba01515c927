//! What was counted and prevented in a window of time (protocol §12).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use onus_api::{
    EdgeCounts, EdgePolicyFacts, FalseSuppression, Incident, IncidentEdge, IncidentRoot, Minute,
    Prevention, SCHEMA_VERSION, Window, WindowPair,
};
use onus_graph::{Attempts, Calls, Prevented, Retries};
use onus_learn::{Z90, wilson};

use crate::book::Book;
use crate::gaps;
use crate::window::WindowKey;

/// The calls of one service to another in the window.
#[derive(Clone, Copy, Default)]
struct Pair {
    counts: EdgeCounts,
    policy: EdgePolicyFacts,
}

type Pairs<'a> = BTreeMap<(&'a str, &'a str), Pair>;

/// The most edges that are listed; the sums are over all of them.
const EDGES_MAX: usize = 100;

/// What was counted in these minutes.
pub(crate) fn window(
    book: &Book,
    windows: &[(WindowKey, EdgeCounts)],
    from: u32,
    to: u32,
) -> Window {
    let mut minutes: BTreeMap<u32, Minute> = BTreeMap::new();
    let mut edges: HashMap<u32, EdgeCounts> = HashMap::new();
    for (key, counts) in windows {
        let minute = minutes.entry(key.minute).or_default();
        minute.at = u64::from(key.minute) * 60_000;
        minute.calls += counts.calls();
        minute.failed += counts.calls_failed;
        minute.retries += counts.retries;
        minute.suppressed += counts.suppressed;
        let sum = edges.entry(key.edge).or_default();
        *sum = sum.plus(*counts);
    }
    let mut pairs = Pairs::new();
    for (edge, counts) in edges {
        let Some(row) = book.edge(edge) else { continue };
        let ends = (&**book.names.name(row.key.caller), &**book.names.name(row.key.callee));
        let pair = pairs.entry(ends).or_default();
        pair.counts = pair.counts.plus(counts);
        if row.policy.attempts >= pair.policy.attempts {
            pair.policy = row.policy;
        }
    }
    Window {
        schema_version: SCHEMA_VERSION,
        from: u64::from(from) * 60_000,
        to: u64::from(to) * 60_000,
        minutes: minutes.into_values().collect(),
        pairs: pairs
            .into_iter()
            .map(|((caller, callee), Pair { counts, policy })| WindowPair {
                caller: caller.to_owned(),
                callee: callee.to_owned(),
                counts,
                policy,
            })
            .collect(),
        missing: gaps::missing(book),
        elsewhere: Vec::new(),
    }
}

/// The incident of a window, which may have been put together of those of several analyses.
#[must_use]
pub fn incident(window: &Window) -> Incident {
    let pairs: Pairs<'_> = window
        .pairs
        .iter()
        .map(|it| ((&*it.caller, &*it.callee), Pair { counts: it.counts, policy: it.policy }))
        .collect();
    let origin = origin(&pairs);
    let roots = origin.map(|origin| roots(&pairs, origin)).unwrap_or_default();
    let mut listed: Vec<_> = pairs.iter().map(|(ends, pair)| listed(*ends, pair)).collect();
    let direct = listed.iter().map(|edge| edge.direct).sum();
    listed.sort_by_key(|edge| std::cmp::Reverse(edge.counts.calls_failed));
    listed.truncate(EDGES_MAX);
    let sum = |of: fn(&Prevention) -> f64| roots.iter().map(|root| of(&root.prevented)).sum();
    Incident {
        schema_version: SCHEMA_VERSION,
        from: window.from,
        to: window.to,
        minutes: window.minutes.clone(),
        origin: origin.map(str::to_owned),
        total: Prevention {
            independent: sum(|it| it.independent),
            persistent: sum(|it| it.persistent),
            mixture: sum(|it| it.mixture),
        },
        false_suppression: false_suppression(pairs.values().map(|pair| &pair.counts)),
        edges: listed,
        roots,
        direct,
        missing: window.missing.clone(),
        elsewhere: window.elsewhere.clone(),
    }
}

/// How many suppressed retries would have succeeded.
pub(crate) fn false_suppression<'a>(
    counts: impl Iterator<Item = &'a EdgeCounts>,
) -> FalseSuppression {
    let (succeeded, tried) = counts.fold((0, 0), |(succeeded, tried), counts| {
        let (ok, made) = counts.false_suppressions();
        (succeeded + ok, tried + made)
    });
    FalseSuppression { tried, succeeded, interval: wilson(succeeded as f64, tried as f64, Z90) }
}

fn listed((caller, callee): (&str, &str), pair: &Pair) -> IncidentEdge {
    let failing = share(pair.counts.calls_failed, pair.counts.calls());
    IncidentEdge {
        caller: caller.to_owned(),
        callee: callee.to_owned(),
        counts: pair.counts,
        direct: Prevented::direct(pair.counts.suppressed, retries(&pair.policy), failing),
    }
}

/// The callee with most failures among those that do not merely pass on those of others.
fn origin<'a>(pairs: &Pairs<'a>) -> Option<&'a str> {
    let mut of: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for (&(caller, callee), pair) in pairs {
        of.entry(callee).or_default().0 += pair.counts.calls_failed;
        of.entry(caller).or_default().1 += pair.counts.calls_failed;
    }
    let own = of
        .into_iter()
        .map(|(service, (inbound, outbound))| (inbound.saturating_sub(outbound), service));
    own.filter(|(own, _)| *own > 0).max().map(|(_, service)| service)
}

/// The roots whose requests failed on the way to the origin.
fn roots(pairs: &Pairs<'_>, origin: &str) -> Vec<IncidentRoot> {
    // From the origin up, each service once: the hop towards the origin with most failures.
    let mut towards: BTreeMap<&str, &str> = BTreeMap::new();
    let mut seen = BTreeSet::from([origin]);
    let mut next = vec![origin];
    while let Some(callee) = next.pop() {
        let failing =
            pairs.iter().filter(|(ends, pair)| ends.1 == callee && pair.counts.calls_failed > 0);
        for (&(caller, _), _) in failing {
            if seen.insert(caller) {
                towards.insert(caller, callee);
                next.push(caller);
            }
        }
    }
    let is_called = |service: &str| {
        pairs.iter().any(|(ends, pair)| ends.1 == service && pair.counts.calls_failed > 0)
    };
    let roots = towards.keys().copied().filter(|service| !is_called(service));
    let mut roots: Vec<_> = roots.map(|service| root(pairs, &towards, service)).collect();
    roots.sort_by(|one, other| other.prevented.mixture.total_cmp(&one.prevented.mixture));
    roots
}

fn root(pairs: &Pairs<'_>, towards: &BTreeMap<&str, &str>, service: &str) -> IncidentRoot {
    let mut path = vec![service.to_owned()];
    let mut hops = Vec::new();
    let mut at = service;
    while let Some(&callee) = towards.get(at) {
        hops.extend(pairs.get(&(at, callee)));
        path.push(callee.to_owned());
        at = callee;
    }
    let calls: Vec<Calls> = hops.iter().copied().map(calls).collect();
    let attempts = hops.last().map(|pair| attempts(&pair.counts));
    let attempts = attempts.unwrap_or(Attempts { first_failed: 0.0, second_failed: 0.0 });
    let prevented = Prevented::on_path(&calls, attempts);
    let requests = hops.first().map_or(0, |pair| requests(&pair.counts));
    let all = |each: f64| each * requests as f64;
    IncidentRoot {
        service: service.to_owned(),
        path,
        requests,
        prevented: Prevention {
            independent: all(prevented.independent),
            persistent: all(prevented.persistent),
            mixture: all(prevented.mixture),
        },
    }
}

/// Requests that called the edge.
fn requests(counts: &EdgeCounts) -> u64 {
    counts.ok_caller_ok + counts.ok_caller_failed + counts.failures()
}

fn calls(pair: &Pair) -> Calls {
    let counts = &pair.counts;
    Calls {
        per_request: share(counts.calls(), requests(counts)).max(1.0),
        attempts: share(counts.attempts(), counts.calls()).max(1.0),
        attempts_when_ok: 1.0 + share(counts.retries_ok, counts.calls_ok),
        failed: share(counts.calls_failed, counts.calls()),
        retries: retries(&pair.policy),
    }
}

fn attempts(counts: &EdgeCounts) -> Attempts {
    Attempts {
        first_failed: share(counts.calls_failed + counts.retries_ok, counts.calls()).min(1.0),
        second_failed: match counts.retries {
            // Nobody tried twice: what failed is taken to last.
            0 => 1.0,
            made => share(made.saturating_sub(counts.retries_ok), made),
        },
    }
}

fn retries(policy: &EdgePolicyFacts) -> Retries {
    Retries {
        attempts: policy.attempts.max(policy.declared_attempts).max(1),
        budget: policy.budget_percent.map(|percent| f64::from(percent) / 100.0),
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls that all failed; the callee was tried so often.
    fn pair(calls: u64, attempts: u64, suppressed: u64) -> Pair {
        Pair {
            counts: EdgeCounts {
                alone_caller_failed: calls,
                calls_failed: calls,
                retries: attempts - calls,
                suppressed,
                ..EdgeCounts::default()
            },
            policy: EdgePolicyFacts { attempts: 2, ..EdgePolicyFacts::default() },
        }
    }

    #[test]
    fn a_chain_of_ownership_has_prevented_what_blind_retries_would_have_made() {
        // A → B → C → D, D fails; ownership: 1, 1, 1, 2 requests instead of 1, 2, 4, 8.
        let pairs = Pairs::from([
            (("a", "b"), pair(100, 100, 100)),
            (("b", "c"), pair(100, 100, 100)),
            (("c", "d"), pair(100, 200, 0)),
        ]);
        assert_eq!(origin(&pairs), Some("d"));
        let roots = roots(&pairs, "d");
        assert_eq!(roots.len(), 1);
        assert_eq!(roots[0].path, ["a", "b", "c", "d"]);
        assert_eq!(roots[0].requests, 100);
        // 15 requests for one, of which 5 were made.
        assert_eq!(roots[0].prevented.persistent, 1_000.0);
        assert_eq!(roots[0].prevented.mixture, 1_000.0);
        assert_eq!(listed(("a", "b"), &pairs[&("a", "b")]).direct, 100.0);
    }

    #[test]
    fn a_service_that_passes_failures_on_is_no_origin() {
        let pairs = Pairs::from([
            (("a", "b"), pair(100, 100, 0)),
            (("b", "d"), pair(90, 90, 0)),
            (("x", "y"), pair(20, 20, 0)),
        ]);
        assert_eq!(origin(&pairs), Some("d"));
        assert_eq!(origin(&Pairs::new()), None);
    }

    #[test]
    fn services_that_call_in_a_circle_end() {
        let pairs = Pairs::from([(("a", "b"), pair(10, 10, 0)), (("b", "a"), pair(5, 5, 0))]);
        assert_eq!(origin(&pairs), Some("b"));
        assert_eq!(roots(&pairs, "b"), []);
    }
}
