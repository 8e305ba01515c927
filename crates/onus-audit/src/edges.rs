//! Edges: what each source says of the calls of one service to another.

use std::collections::{BTreeMap, BTreeSet};

use onus_learn::MeasuredClass;
use onus_retry_config::{Service, Traffic};

use crate::audit::Evidence;
use crate::nodes::Nodes;
use crate::retries::Retries;

/// What metrics say of the calls of one service to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Calls.
    pub calls: f64,
    /// Calls that failed for good.
    pub failures: f64,
    /// Attempts that reached the callee, where they are counted.
    pub attempts: Option<f64>,
    /// Retries, where they are counted.
    pub retries: Option<f64>,
    /// What travels.
    pub traffic: Option<Traffic>,
    /// What is known of the callee's failures.
    pub class: Option<Class>,
    /// What its callers call it, where that is not its name.
    pub(crate) called: BTreeSet<Service>,
    /// Answers of any attempt, where calls are not counted.
    pub(crate) rough_calls: f64,
    pub(crate) rough_failures: f64,
}

/// Whether a caller survives its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// A failing callee takes it down.
    FailClose,
    /// It survives.
    FailOpen,
    /// Too little is known; taken for one that does not survive.
    Unknown,
}

/// All that is known of the calls of one service to another.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeFacts {
    /// Who calls.
    pub caller: String,
    /// Who is called.
    pub callee: String,
    /// Calls; none where only the configuration knows of them.
    pub calls: Option<f64>,
    /// The share of calls that failed for good.
    pub failure_ratio: Option<f64>,
    /// Requests at the callee for a call, as they were counted.
    pub attempts_per_call: Option<f64>,
    /// Whether the caller survives the callee.
    pub class: Class,
    /// P(caller failed | callee failed), as traces show it.
    pub p: Option<f64>,
    /// The retries.
    pub retries: Retries,
    pub(crate) caller_node: usize,
    pub(crate) callee_node: usize,
    pub(crate) called: BTreeSet<Service>,
    pub(crate) traced_attempts: Option<u32>,
    pub(crate) traffic: Traffic,
}

impl Observed {
    fn calls(&self) -> Option<f64> {
        [self.calls, self.rough_calls].into_iter().find(|calls| *calls > 0.0)
    }

    fn failure_ratio(&self) -> Option<f64> {
        let failures = if self.calls > 0.0 { self.failures } else { self.rough_failures };
        Some((failures / self.calls()?).min(1.0))
    }

    /// Attempts over calls. Below one, requests have got lost on the way.
    fn attempts_per_call(&self) -> Option<f64> {
        if self.calls <= 0.0 {
            return None;
        }
        let retries = self.retries.map(|retries| 1.0 + retries / self.calls);
        retries.or_else(|| Some(self.attempts? / self.calls))
    }
}

impl Class {
    /// The spelling in metrics and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailClose => "fail-close",
            Self::FailOpen => "fail-open",
            Self::Unknown => "unknown",
        }
    }

    const fn of(measured: MeasuredClass) -> Self {
        match measured {
            MeasuredClass::FailClose => Self::FailClose,
            MeasuredClass::FailOpen => Self::FailOpen,
            MeasuredClass::Unknown | MeasuredClass::NoData => Self::Unknown,
        }
    }
}

/// Puts together the edges of all sources.
pub(crate) fn collect(evidence: &Evidence<'_>, nodes: &mut Nodes) -> Vec<EdgeFacts> {
    let mut edges: BTreeMap<(usize, usize), EdgeFacts> = BTreeMap::new();
    // Metrics come first: they know namespaces.
    for (caller, callee, observed) in evidence.metrics.iter().flat_map(|it| it.edges()) {
        let edge = edge(&mut edges, nodes.add(caller), nodes.add(callee));
        edge.called.clone_from(&observed.called);
        edge.calls = observed.calls();
        edge.failure_ratio = observed.failure_ratio();
        edge.attempts_per_call = observed.attempts_per_call();
        edge.traffic = observed.traffic.unwrap_or(Traffic::Unknown);
        edge.class = observed.class.unwrap_or(Class::Unknown);
    }
    for traced in evidence.traces.iter().flat_map(|it| &it.edges) {
        let (caller, callee) = (nodes.add_traced(&traced.caller), nodes.add_traced(&traced.callee));
        if caller == callee {
            continue;
        }
        let edge = edge(&mut edges, caller, callee);
        edge.p = traced.p();
        edge.traced_attempts = traced.attempts;
        if edge.class == Class::Unknown {
            edge.class = Class::of(traced.class());
        }
        if edge.calls.is_none() {
            edge.calls = Some(traced.calls as f64);
            edge.failure_ratio = Some(traced.failures as f64 / traced.calls.max(1) as f64);
        }
    }
    for listed in evidence.listed {
        let (caller, callee) = (nodes.add_traced(&listed.caller), nodes.add_traced(&listed.callee));
        if caller != callee {
            edge(&mut edges, caller, callee);
        }
    }
    let mut edges: Vec<_> = edges.into_values().collect();
    for edge in &mut edges {
        edge.caller = nodes.name(edge.caller_node);
        edge.callee = nodes.name(edge.callee_node);
    }
    edges
}

fn edge(
    edges: &mut BTreeMap<(usize, usize), EdgeFacts>,
    caller_node: usize,
    callee_node: usize,
) -> &mut EdgeFacts {
    edges.entry((caller_node, callee_node)).or_insert_with(|| EdgeFacts {
        caller: String::new(),
        callee: String::new(),
        calls: None,
        failure_ratio: None,
        attempts_per_call: None,
        class: Class::Unknown,
        p: None,
        retries: Retries::NONE,
        caller_node,
        callee_node,
        called: BTreeSet::new(),
        traced_attempts: None,
        traffic: Traffic::Unknown,
    })
}
