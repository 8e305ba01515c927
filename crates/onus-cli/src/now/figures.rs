//! What a snapshot says about an incident: who is at fault, how load grows on the way there, who
//! multiplies it, and whose budget is empty.

use std::collections::BTreeSet;

use onus_api::{EdgeNow, ServiceNow, Snapshot};
use serde::Serialize;

/// A hop multiplies where a call makes more attempts than this on average.
const MULTIPLIES: f64 = 1.2;
/// The most rows of each table; an incident has few culprits, and a screen has few lines.
const ROWS_MAX: usize = 8;

/// What is shown.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Figures {
    pub(crate) schema_version: u32,
    /// Where the figures come from.
    pub(crate) source: String,
    /// How old they are, in seconds.
    pub(crate) age_seconds: f64,
    /// For how long was counted.
    pub(crate) window_seconds: f64,
    pub(crate) culprits: Vec<Culprit>,
    /// From the root down to the first culprit.
    pub(crate) path: Vec<Hop>,
    pub(crate) multiplying: Vec<Hop>,
    pub(crate) suppressed_per_second: f64,
    pub(crate) empty_budgets: Vec<Budget>,
    /// Services whose switches say something.
    pub(crate) switched: Vec<Switched>,
    /// What is not in these figures.
    pub(crate) missing: Vec<String>,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Culprit {
    pub(crate) service: String,
    pub(crate) why: Why,
    pub(crate) errors_per_second: f64,
    /// How long ago it was first seen, in seconds; `None` where the source does not remember.
    pub(crate) first_seen_seconds: Option<f64>,
    /// How old its counts are, in seconds: since who counted them was last heard.
    pub(crate) age_seconds: f64,
}

/// Why a service is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Why {
    /// It claims errors as its own.
    OwnClaims,
    /// Its callers fail on it, and it does not report: it is down, or has no Onus.
    Silent,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Hop {
    pub(crate) caller: String,
    pub(crate) callee: String,
    /// Attempts for one call.
    pub(crate) factor: f64,
    /// The product from the first hop to this one.
    pub(crate) from_root: f64,
    pub(crate) attempts_per_second: f64,
    /// Whether a layer below retries that nobody declared.
    pub(crate) foreign: bool,
    /// How old its counts are, in seconds.
    pub(crate) age_seconds: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Budget {
    pub(crate) caller: String,
    pub(crate) callee: String,
    pub(crate) denied_per_second: f64,
    /// How old its counts are, in seconds.
    pub(crate) age_seconds: f64,
}

#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Switched {
    pub(crate) service: String,
    pub(crate) mode: String,
    pub(crate) shield_left_seconds: u64,
}

impl Figures {
    /// The figures of a snapshot that was taken `age` seconds ago.
    pub(crate) fn of(snapshot: &Snapshot, source: String, age_seconds: f64) -> Self {
        let per_second = |count: u64| count as f64 / snapshot.seconds.max(0.001);
        let heard = Heard(snapshot, age_seconds);
        let culprits = culprits(snapshot, &heard, per_second);
        let path = culprits.first().map(|culprit| path(snapshot, &culprit.service));
        let path = hops(path.unwrap_or_default(), &heard, per_second);
        let mut multiplying: Vec<_> = snapshot
            .edges
            .iter()
            .filter(|edge| factor(edge) > MULTIPLIES || edge.policy.foreign_retries)
            .collect();
        multiplying.sort_by(|one, other| factor(other).total_cmp(&factor(one)));
        multiplying.truncate(ROWS_MAX);
        let multiplying = multiplying
            .into_iter()
            .flat_map(|edge| hops(Vec::from([edge]), &heard, per_second))
            .collect();
        let mut empty: Vec<_> = snapshot
            .edges
            .iter()
            .filter(|edge| {
                edge.policy.budget_balance.unwrap_or(0) == 0 && edge.counts.budget_denied > 0
            })
            .map(|edge| Budget {
                caller: edge.caller.clone(),
                callee: edge.callee.clone(),
                denied_per_second: per_second(edge.counts.budget_denied),
                age_seconds: heard.age(&edge.caller),
            })
            .collect();
        empty.sort_by(|one, other| other.denied_per_second.total_cmp(&one.denied_per_second));
        empty.truncate(ROWS_MAX);
        let is_switched =
            |it: &&ServiceNow| it.facts.mode == "off" || it.facts.shield_left_seconds > 0;
        let switched = snapshot.services.iter().filter(is_switched).map(|it| Switched {
            service: it.service.clone(),
            mode: it.facts.mode.clone(),
            shield_left_seconds: it.facts.shield_left_seconds,
        });
        Self {
            schema_version: 1,
            source,
            age_seconds,
            window_seconds: snapshot.seconds,
            culprits,
            path,
            multiplying,
            suppressed_per_second: per_second(
                snapshot.edges.iter().map(|it| it.counts.suppressed).sum(),
            ),
            empty_budgets: empty,
            switched: switched.collect(),
            missing: snapshot.missing.clone(),
        }
    }
}

/// When services were last heard of.
struct Heard<'a>(&'a Snapshot, f64);

impl Heard<'_> {
    /// How old what this service has counted is, with the age of the snapshot.
    fn age(&self, service: &str) -> f64 {
        let Self(snapshot, age) = self;
        let known = snapshot.services.iter().find(|it| it.service == service);
        let silent = known.map_or(0, |it| snapshot.at.saturating_sub(it.seen));
        silent as f64 / 1000.0 + age
    }
}

fn culprits(
    snapshot: &Snapshot,
    heard: &Heard<'_>,
    per_second: impl Fn(u64) -> f64,
) -> Vec<Culprit> {
    let ago =
        |since: Option<u64>| since.map(|since| snapshot.at.saturating_sub(since) as f64 / 1000.0);
    let own = snapshot.services.iter().filter(|it| it.counts.claims_own > 0).map(|it| Culprit {
        service: it.service.clone(),
        why: Why::OwnClaims,
        errors_per_second: per_second(it.counts.claims_own),
        first_seen_seconds: ago(it.own_since),
        age_seconds: heard.age(&it.service),
    });
    let speaking: BTreeSet<&str> = snapshot
        .services
        .iter()
        .filter(|it| it.counts.requests() > 0)
        .map(|it| it.service.as_str())
        .collect();
    let failing =
        |it: &&EdgeNow| it.counts.calls_failed > 0 && !speaking.contains(it.callee.as_str());
    let callees: BTreeSet<&str> =
        snapshot.edges.iter().filter(failing).map(|it| it.callee.as_str()).collect();
    let silent = callees.into_iter().map(|callee| {
        let edges = || snapshot.edges.iter().filter(failing).filter(|it| it.callee == callee);
        Culprit {
            service: callee.to_owned(),
            why: Why::Silent,
            errors_per_second: per_second(edges().map(|it| it.counts.calls_failed).sum()),
            first_seen_seconds: ago(edges().filter_map(|it| it.failing_since).min()),
            age_seconds: edges().map(|it| heard.age(&it.caller)).fold(f64::INFINITY, f64::min),
        }
    });
    let mut culprits: Vec<_> = own.chain(silent).collect();
    culprits.sort_by(|one, other| other.errors_per_second.total_cmp(&one.errors_per_second));
    culprits.truncate(ROWS_MAX);
    culprits
}

/// The edges from a root down to a service: at each step up the caller with most failed calls.
fn path<'a>(snapshot: &'a Snapshot, culprit: &str) -> Vec<&'a EdgeNow> {
    let mut path: Vec<&EdgeNow> = Vec::new();
    let mut at = culprit;
    let mut seen = BTreeSet::from([culprit]);
    loop {
        let calls =
            snapshot.edges.iter().filter(|it| it.callee == at && it.counts.calls_failed > 0);
        let worst = calls.max_by_key(|it| it.counts.calls_failed);
        let Some(edge) = worst.filter(|it| seen.insert(&it.caller)) else { break };
        path.push(edge);
        at = &edge.caller;
    }
    path.reverse();
    path
}

fn hops(edges: Vec<&EdgeNow>, heard: &Heard<'_>, per_second: impl Fn(u64) -> f64) -> Vec<Hop> {
    let mut from_root = 1.0;
    let hop = |edge: &EdgeNow| {
        from_root *= factor(edge);
        Hop {
            caller: edge.caller.clone(),
            callee: edge.callee.clone(),
            factor: factor(edge),
            from_root,
            attempts_per_second: per_second(edge.counts.attempts()),
            foreign: edge.policy.foreign_retries,
            age_seconds: heard.age(&edge.caller),
        }
    };
    edges.into_iter().map(hop).collect()
}

fn factor(edge: &EdgeNow) -> f64 {
    match edge.counts.calls() {
        0 => 1.0,
        calls => edge.counts.attempts() as f64 / calls as f64,
    }
}

#[cfg(test)]
mod tests {
    use onus_api::{EdgeCounts, EdgePolicyFacts, ProcedureCounts, ServiceFacts};

    use super::*;

    fn edge(caller: &str, callee: &str, calls_failed: u64, retries: u64) -> EdgeNow {
        EdgeNow {
            caller: caller.to_owned(),
            callee: callee.to_owned(),
            counts: EdgeCounts { calls_failed, retries, ..EdgeCounts::default() },
            failing_since: Some(40_000),
            ..EdgeNow::default()
        }
    }

    fn service(name: &str, failed: u64, claims_own: u64) -> ServiceNow {
        ServiceNow {
            service: name.to_owned(),
            counts: ProcedureCounts { failed, claims_own, ..ProcedureCounts::default() },
            own_since: (claims_own > 0).then_some(45_000),
            seen: 47_000,
            ..ServiceNow::default()
        }
    }

    fn snapshot(services: Vec<ServiceNow>, edges: Vec<EdgeNow>) -> Snapshot {
        Snapshot { at: 50_000, seconds: 10.0, services, edges, ..Snapshot::default() }
    }

    #[test]
    fn the_culprit_is_who_claims_most_errors_as_its_own() {
        let services = vec![service("a", 100, 1), service("b", 100, 0), service("c", 100, 80)];
        let edges = vec![edge("a", "b", 100, 0), edge("b", "c", 100, 100), edge("x", "c", 5, 0)];
        let figures = Figures::of(&snapshot(services, edges), "test".to_owned(), 1.0);
        let found: Vec<_> = figures
            .culprits
            .iter()
            .map(|it| (&*it.service, it.why, it.errors_per_second, it.first_seen_seconds))
            .collect();
        assert_eq!(
            found,
            [("c", Why::OwnClaims, 8.0, Some(5.0)), ("a", Why::OwnClaims, 0.1, Some(5.0))]
        );
        assert_eq!(
            figures.culprits[0].age_seconds, 4.0,
            "3 s before the snapshot, which is 1 s old"
        );
        let path: Vec<_> =
            figures.path.iter().map(|hop| (&*hop.caller, &*hop.callee, hop.from_root)).collect();
        assert_eq!(path, [("a", "b", 1.0), ("b", "c", 2.0)]);
        let multiplying: Vec<_> = figures.multiplying.iter().map(|hop| &*hop.callee).collect();
        assert_eq!(multiplying, ["c"]);
    }

    #[test]
    fn a_service_that_is_down_is_named_by_its_callers() {
        // It reported until it died: its last counts are zero.
        let services = vec![service("a", 100, 0), service("b", 100, 0), service("db", 0, 0)];
        let edges = vec![edge("a", "b", 100, 0), edge("b", "db", 60, 0), edge("b", "cache", 7, 0)];
        let figures = Figures::of(&snapshot(services, edges), "test".to_owned(), 0.0);
        let found: Vec<_> = figures
            .culprits
            .iter()
            .map(|it| (&*it.service, it.why, it.first_seen_seconds))
            .collect();
        assert_eq!(found, [("db", Why::Silent, Some(10.0)), ("cache", Why::Silent, Some(10.0))]);
    }

    #[test]
    fn empty_budgets_and_thrown_switches_are_shown() {
        let mut budget = edge("a", "b", 10, 0);
        budget.counts.budget_denied = 30;
        budget.counts.suppressed = 20;
        budget.policy = EdgePolicyFacts { budget_balance: Some(0), ..EdgePolicyFacts::default() };
        let mut full = budget.clone();
        full.callee = "c".to_owned();
        full.policy.budget_balance = Some(3);
        let mut shielded = service("b", 1, 0);
        shielded.facts = ServiceFacts { shield_left_seconds: 60, ..ServiceFacts::default() };
        let figures = Figures::of(
            &snapshot(vec![shielded, service("c", 1, 0)], vec![budget, full]),
            "test".to_owned(),
            0.0,
        );
        let empty: Vec<_> =
            figures.empty_budgets.iter().map(|it| (&*it.callee, it.denied_per_second)).collect();
        assert_eq!(empty, [("b", 3.0)]);
        let switched: Vec<_> = figures.switched.iter().map(|it| &*it.service).collect();
        assert_eq!(switched, ["b"]);
        assert_eq!(figures.suppressed_per_second, 4.0);
    }

    #[test]
    fn calls_that_lead_round_end() {
        let edges = vec![edge("a", "b", 5, 0), edge("b", "a", 5, 0)];
        let figures =
            Figures::of(&snapshot(vec![service("b", 5, 5)], edges), "test".to_owned(), 0.0);
        assert_eq!(figures.path.len(), 1);
    }
}
