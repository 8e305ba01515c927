//! A tree of services in which every decision is the core's: requests are function calls, and
//! parallel calls are made one after another without stopping at a failure.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use onus_core::{
    Arm, Backoff, BudgetConfig, CallError, CalleeClaim, Circumstances, Claim, DeclaredRetries,
    Deposit, EdgeClass, EdgePolicy, EdgeState, ErrorSet, InboundCall, RetryPolicy,
};

use super::hop::{self, Hop};
use crate::host::{Counts, Unsupported};
use crate::step::ModeName;
use crate::tree::{Node, RetriesBy, TreeAnswer, TreeEdge, TreeVector, What};

/// The tree of a vector while it is run.
pub(super) struct Tree<'a> {
    vector: &'a TreeVector,
    calls: BTreeMap<&'a str, Vec<&'a str>>,
    nodes: BTreeMap<&'a str, Node>,
    pub(super) edges: BTreeMap<(&'a str, &'a str), HeldEdge>,
    handled: BTreeMap<&'a str, u64>,
}

/// More requests than any vector counts: a rule that stops retries is broken, and the wrong counts
/// shall be seen before the tests are given up.
const REQUESTS_MAX: u64 = 100_000;

/// An edge as its caller holds it.
pub(super) struct HeldEdge {
    pub(super) setup: TreeEdge,
    pub(super) policy: EdgePolicy,
    pub(super) state: EdgeState,
}

/// How an attempt ended for the caller.
#[derive(Clone, Copy)]
pub(super) enum Reply {
    Ok,
    Error {
        error: CallError,
        claim: Option<Claim>,
        attempt: Option<u32>,
        veto: bool,
    },
    /// The caller waits in vain.
    Silent,
}

/// What a request says of itself.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) mark: bool,
    /// The number of the attempt, by whatever header says it.
    pub(super) attempt: u32,
}

impl<'a> Tree<'a> {
    pub(super) fn new(vector: &'a TreeVector) -> Self {
        let calls = vector.calls();
        let nodes: BTreeMap<_, _> = calls.keys().map(|name| (*name, vector.node(name))).collect();
        let pairs = calls.iter().flat_map(|(from, to)| to.iter().map(move |to| (*from, *to)));
        let edges = pairs.map(|(from, to)| {
            let setup = vector.edge(from, to);
            let policy = policy(&setup, &nodes[from]);
            let state = EdgeState::new(&policy);
            ((from, to), HeldEdge { setup, policy, state })
        });
        let edges = edges.collect();
        Self { vector, calls, nodes, edges, handled: BTreeMap::new() }
    }

    pub(super) fn run(mut self) -> Result<Counts, Unsupported> {
        let root = self.vector.root().ok_or("needs one root")?;
        let mut answer = None;
        for _ in 0..self.vector.runs {
            answer = Some(match self.handle(root, Request { mark: false, attempt: 1 }) {
                Reply::Ok => TreeAnswer::Ok,
                Reply::Error { claim, .. } => {
                    TreeAnswer::Error(claim.map_or(CalleeClaim::Missing, CalleeClaim::Reply))
                }
                Reply::Silent => TreeAnswer::Error(CalleeClaim::Silent),
            });
        }
        let requests = self.handled.iter().map(|(node, count)| ((*node).to_owned(), *count));
        Ok(Counts { requests: requests.collect(), answer })
    }

    /// Whether retries go on without an end.
    pub(super) fn runs_away(&self) -> bool {
        self.handled.values().sum::<u64>() > REQUESTS_MAX
    }

    /// A node handles a request.
    pub(super) fn handle(&mut self, name: &'a str, request: Request) -> Reply {
        let handled = self.handled.entry(name).or_default();
        *handled += 1;
        let number = *handled;
        let vector = self.vector;
        let happens = |what| vector.happens(what, name, number);
        let node = self.nodes[name].clone();
        let arm = arm(&node);
        let mark = request.mark && !arm.is_off();
        let mut inbound = InboundCall::new(arm, mark);
        let survives = !happens(What::FailsAtOnce) && self.call_all(name, &node, &mut inbound);
        let is_error = !survives || happens(What::Fails);
        if happens(What::NeverAnswers) {
            return Reply::Silent;
        }
        if !is_error {
            return Reply::Ok;
        }
        let made_calls = !happens(What::FailsAtOnce) && !self.calls[name].is_empty();
        let verdict = inbound.claim(Circumstances {
            shield: node.shield,
            silent_claims: node.silent_claims,
            untied_calls: node.context_lost && made_calls,
        });
        let verdict = verdict.filter(|_| node.onus);
        Reply::Error {
            error: if happens(What::ExcludedError) { EXCLUDED } else { ORDINARY },
            claim: verdict.map(|verdict| verdict.claim),
            attempt: (node.onus && !arm.is_off()).then_some(request.attempt),
            veto: verdict.is_some_and(|verdict| verdict.vetoes),
        }
    }

    /// The node calls its callees; whether it survives what they answer.
    fn call_all(&mut self, name: &'a str, node: &Node, inbound: &mut InboundCall) -> bool {
        let parallel = self.vector.parallel.contains(name);
        let mut survives = true;
        for callee in self.calls[name].clone() {
            let hop = Hop { from: name, to: callee, arm: inbound.arm() };
            let ok = hop::call(self, hop, node, inbound);
            survives &= ok || self.edges[&(name, callee)].setup.fail_open;
            if !survives && !parallel {
                break;
            }
        }
        survives
    }
}

/// How far ownership reaches at a node; a node without Onus neither sends nor reads.
fn arm(node: &Node) -> Arm {
    match node.mode {
        _ if !node.onus => Arm::Off,
        ModeName::Off => Arm::Off,
        ModeName::Observe => Arm::Observe,
        ModeName::Enforce => Arm::Enforce,
    }
}

fn policy(edge: &TreeEdge, node: &Node) -> EdgePolicy {
    let attempts = edge.attempts.unwrap_or(0);
    let mut covered = ErrorSet::failures();
    covered.remove(EXCLUDED);
    let mut retry = RetryPolicy::new(attempts);
    if let Some(policy) = &mut retry {
        policy.errors = covered;
        policy.backoff = Backoff::NONE;
        policy.budget = edge.budget_percent.map(|percent| BudgetConfig {
            percent,
            deposit: Deposit::Request,
            min_per_second: 0,
            ttl_seconds: NonZeroU32::MIN,
        });
        policy.probes = false;
    }
    let errors = ErrorSet::failures();
    let declared = DeclaredRetries { attempts, errors };
    let (retry, declared) = match node.retries {
        RetriesBy::Onus => (retry.filter(|_| node.onus), None),
        RetriesBy::BlindLayer | RetriesBy::ObedientLayer => {
            (None, (attempts >= 2).then_some(declared))
        }
    };
    EdgePolicy { retry, declared, ..EdgePolicy::default() }
}

impl HeldEdge {
    pub(super) fn class(&self) -> EdgeClass {
        self.setup.held.unwrap_or_default()
    }
}

/// What a node answers that fails, and what it answers where no policy covers its error.
const ORDINARY: CallError = CallError::Http(503);
const EXCLUDED: CallError = CallError::Http(501);
