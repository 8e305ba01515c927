//! What has been reported, and what the next report says.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use onus_agent::{
    Agent, ClaimReason, Edge, EdgeName, EdgeTotals, Mode, Procedure, ProcedureTotals, Stop,
    Timestamp,
};
use onus_api::{
    EdgeCounts, EdgeDelta, EdgePolicyFacts, OTHER, ProcedureCounts, ProcedureDelta, Report,
    SCHEMA_VERSION, ServiceFacts,
};

/// The most edges of one report; what is left goes into the next.
const EDGES_MAX: usize = 1_000;

/// What has been reported of a process.
///
/// One report at most is under way. It is sent again, as it is, until the analysis has stored or
/// refused it; what is counted meanwhile stays in the counters.
pub(crate) struct Ledger {
    instance: String,
    sequence: u64,
    edges: Vec<Told>,
    procedures: HashMap<Procedure, ProcedureCounts>,
    under_way: Option<Bytes>,
}

/// What was told of an edge.
struct Told {
    name: EdgeName,
    counts: EdgeCounts,
    /// Whether it failed in the last report that named it.
    was_failing: bool,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        // The randomness of hash maps is the operating system's; two processes that start at once
        // must not have one name.
        let random = || RandomState::new().hash_one(0_u64);
        Self {
            instance: format!("{:016x}{:016x}", random(), random()),
            sequence: 0,
            edges: Vec::new(),
            procedures: HashMap::new(),
            under_way: None,
        }
    }

    /// Whether an edge fails that did not when it was last reported.
    pub(crate) fn is_news(&self, agent: &Agent) -> bool {
        agent.edges().enumerate().any(|(at, edge)| {
            let failed = edge.totals().calls[1];
            self.edges
                .get(at)
                .map_or(failed > 0, |told| !told.was_failing && failed > told.counts.calls_failed)
        })
    }

    /// The report under way, or a new one; `None` where nothing has happened and `always` does not
    /// ask for a sign of life.
    pub(crate) fn next(
        &mut self,
        agent: &Agent,
        now: Timestamp,
        at: u64,
        always: bool,
    ) -> Option<Bytes> {
        if self.under_way.is_none() {
            let report = self.make(agent, now, at);
            if report.edges.is_empty() && report.procedures.is_empty() && !always {
                return None;
            }
            self.sequence = report.sequence;
            // Numbers and text: it cannot fail.
            self.under_way = serde_json::to_vec(&report).ok().map(Bytes::from);
        }
        self.under_way.clone()
    }

    /// The report under way is stored, or will never be.
    pub(crate) fn settled(&mut self) {
        self.under_way = None;
    }

    fn make(&mut self, agent: &Agent, now: Timestamp, at: u64) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            service: agent.service().to_string(),
            instance: self.instance.clone(),
            sequence: self.sequence + 1,
            at,
            facts: facts(agent, now),
            edges: self.edge_deltas(agent, now),
            procedures: self.procedure_deltas(agent),
        }
    }

    fn edge_deltas(&mut self, agent: &Agent, now: Timestamp) -> Vec<EdgeDelta> {
        let mut deltas = Vec::new();
        for (at, edge) in agent.edges().enumerate() {
            if deltas.len() == EDGES_MAX {
                break;
            }
            if self.edges.len() == at {
                let name = edge.name(agent.symbols());
                self.edges.push(Told { name, counts: EdgeCounts::default(), was_failing: false });
            }
            let told = &mut self.edges[at];
            let counts = edge_counts(&edge.totals());
            let delta = counts.since(told.counts);
            if delta.is_zero() {
                continue;
            }
            told.counts = counts;
            told.was_failing = delta.calls_failed > 0;
            deltas.push(EdgeDelta {
                caller_procedure: told.name.caller.clone(),
                callee: told.name.callee.to_string(),
                procedure: told.name.procedure.clone(),
                policy: policy_facts(&edge, now),
                counts: delta,
            });
        }
        deltas
    }

    fn procedure_deltas(&mut self, agent: &Agent) -> Vec<ProcedureDelta> {
        let mut deltas = Vec::new();
        for (procedure, totals) in agent.procedure_totals() {
            let counts = procedure_counts(&totals);
            let told = self.procedures.entry(procedure).or_default();
            let delta = counts.since(*told);
            if !delta.is_zero() {
                *told = counts;
                let name = procedure.display(agent.symbols()).to_string();
                // A request whose procedure nobody knows is one of the others.
                let name = if name.is_empty() { OTHER.to_owned() } else { name };
                deltas.push(ProcedureDelta { procedure: name, counts: delta });
            }
        }
        deltas
    }
}

pub(crate) fn facts(agent: &Agent, now: Timestamp) -> ServiceFacts {
    let mode = agent.mode();
    ServiceFacts {
        mode: mode.as_str().to_owned(),
        enforce_percent: match mode {
            Mode::Enforce(share) => (share.basis_points() / 100) as u8,
            Mode::Off | Mode::Observe => 0,
        },
        shield_left_seconds: agent.shield_left(now).as_secs(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        processes: None,
    }
}

pub(crate) fn policy_facts(edge: &Edge, now: Timestamp) -> EdgePolicyFacts {
    let policy = edge.policy();
    let budget = policy.retry.and_then(|retry| retry.budget);
    EdgePolicyFacts {
        attempts: policy.retry.map_or(1, |retry| retry.attempts()),
        budget_percent: budget.map(|budget| budget.percent),
        budget_min_per_second: budget.map_or(0, |budget| budget.min_per_second),
        budget_balance: budget.and_then(|_| edge.budget_balance(now)),
        declared_attempts: policy.declared.map_or(0, |declared| declared.attempts),
        foreign_retries: edge.has_foreign_retries(),
        unsafe_methods: edge.retries_unsafe_methods(),
        unknown: false,
    }
}

pub(crate) fn edge_counts(totals: &EdgeTotals) -> EdgeCounts {
    let [ok, alone, jointly] = totals.requests;
    let [retries, retries_ok] = totals.retries.all();
    EdgeCounts {
        ok_caller_ok: ok[0],
        ok_caller_failed: ok[1],
        alone_caller_ok: alone[0],
        alone_caller_failed: alone[1],
        jointly_caller_ok: jointly[0],
        jointly_caller_failed: jointly[1],
        calls_ok: totals.calls[0],
        calls_failed: totals.calls[1],
        calls_abandoned: totals.calls[2],
        retries,
        retries_ok,
        retries_claimed: totals.retries.claimed[0],
        retries_missing: totals.retries.missing[0],
        retries_unclaimed: totals.retries.unclaimed[0],
        retries_unclaimed_ok: totals.retries.unclaimed[1],
        probes: totals.retries.probe[0],
        probes_ok: totals.retries.probe[1],
        suppressed: totals.stopped(Stop::Suppressed),
        marked: totals.stopped(Stop::Marked),
        gated: totals.stopped(Stop::Gated),
        budget_denied: totals.stopped(Stop::BudgetDenied),
        pushed_back: totals.stopped(Stop::Pushback),
        exhausted: totals.stopped(Stop::Exhausted),
        not_configured: totals.stopped(Stop::NotConfigured),
        not_replayable: totals.stopped(Stop::NotReplayable),
        no_time: totals.stopped(Stop::NoTime),
        shadow_suppressed: totals.shadows,
        untied: totals.untied,
        repeats: totals.repeats,
        invalid_claims: totals.invalid_claims,
    }
}

pub(crate) fn procedure_counts(totals: &ProcedureTotals) -> ProcedureCounts {
    let mut counts = ProcedureCounts {
        ok: totals.requests[0],
        failed: totals.requests[1],
        cancelled: totals.requests[2],
        clean_ok: totals.clean[0],
        clean_failed: totals.clean[1],
        ..ProcedureCounts::default()
    };
    for (&claims, reason) in totals.claims.iter().zip(ClaimReason::ALL) {
        let count = match reason {
            ClaimReason::Own => &mut counts.claims_own,
            ClaimReason::Handoff => &mut counts.claims_handoff,
            ClaimReason::Silent => &mut counts.claims_silent,
            ClaimReason::ContextLost => &mut counts.claims_context_lost,
            ClaimReason::Operator => &mut counts.claims_operator,
            ClaimReason::Stopped(_) | ClaimReason::InFlight => &mut counts.claims_dependency,
        };
        *count += claims;
    }
    counts
}
