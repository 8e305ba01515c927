//! A tree vector as services on sockets.

use std::time::Duration;

use onus::{Annotation, CallError, EdgeClass, ErrorSet, Mode};
use onus_conformance::Unsupported;
use onus_conformance::step::ModeName;
use onus_conformance::tree::{self, Node, RetriesBy, TreeEdge, TreeVector};
use onus_demo::{
    CallOrder, CalleeConfig, Coverage, Fault, RetryLayer, ServiceConfig, Topology, What, When,
};

use super::Wire;

/// The services of a vector, the root first.
pub(super) fn of(vector: &TreeVector, wire: Wire) -> Result<Topology, Unsupported> {
    let root = vector.root().ok_or("needs one root")?;
    let mut names: Vec<_> = vector.calls().into_keys().collect();
    names.sort_by_key(|name| *name != root);
    let mut topology = Topology::chain([]);
    topology.protocol = wire.protocol;
    for name in names {
        let service = service(vector, name)?;
        topology.services.push(ServiceConfig { head_first: wire.head_first, ..service });
    }
    Ok(topology)
}

fn service(vector: &TreeVector, name: &str) -> Result<ServiceConfig, Unsupported> {
    let node = vector.node(name);
    let callees = vector.calls()[name].clone();
    let faults = vector.faults.iter().filter(|fault| fault.node == name);
    let is_dropped = is_dropped(vector, name)?;
    Ok(ServiceConfig {
        callees: callees.iter().map(|to| callee(vector, &node, &vector.edge(name, to))).collect(),
        order: match vector.parallel.contains(name) {
            true => CallOrder::Parallel,
            false => CallOrder::Sequential,
        },
        mode: match node.mode {
            ModeName::Off => Mode::Off,
            ModeName::Observe => Mode::Observe,
            ModeName::Enforce => Mode::ENFORCE,
        },
        coverage: match (node.onus, node.context_lost) {
            (false, _) => Coverage::NonCooperative,
            (true, true) => Coverage::ContextLost,
            (true, false) => Coverage::Correlated,
        },
        shield: node.shield,
        silent_claims: node.silent_claims,
        // Its work is done, however late it is when the caller gives up.
        detached: is_dropped,
        faults: faults.map(|fault| self::fault(fault, is_dropped)).collect(),
        ..ServiceConfig::new(name)
    })
}

fn callee(vector: &TreeVector, node: &Node, edge: &TreeEdge) -> CalleeConfig {
    let attempts = edge.attempts.unwrap_or(0).max(1);
    let (attempts, retry_layer) = match (node.retries, node.onus) {
        (RetriesBy::Onus, true) => (attempts, None),
        (RetriesBy::Onus, false) => (1, None),
        (RetriesBy::BlindLayer, _) => (1, Some(RetryLayer { attempts, obeys_vetoes: false })),
        (RetriesBy::ObedientLayer, _) => (1, Some(RetryLayer { attempts, obeys_vetoes: true })),
    };
    let mut errors = ErrorSet::FAILURES;
    EXCLUDED.into_iter().for_each(|error| errors.remove(error));
    CalleeConfig {
        attempts,
        errors,
        budget_percent: edge.budget_percent,
        retry_layer,
        replayable: edge.replayable,
        tries: node.tries,
        patience: node.drops.then(|| patience(vector, &edge.to)),
        tolerated: edge.fail_open,
        annotation: match edge.held {
            Some(EdgeClass::FailClose) => Some(Annotation::Required),
            Some(EdgeClass::FailOpen) => Some(Annotation::Optional),
            Some(EdgeClass::Unknown) | None => None,
        },
        ..CalleeConfig::new(&edge.to)
    }
}

fn fault(fault: &tree::Fault, is_dropped: bool) -> Fault {
    let what = match fault.what {
        tree::What::Fails => What::Fails,
        tree::What::FailsAtOnce => What::FailsAtOnce,
        tree::What::NeverAnswers if is_dropped => What::Stalls,
        tree::What::NeverAnswers => What::Closes,
        tree::What::ExcludedError => What::NotImplemented,
    };
    let when = match &fault.when {
        tree::When::Always => When::Always,
        tree::When::First(count) => When::First(*count),
        tree::When::Requests(numbers) => When::Numbers(numbers.clone()),
    };
    Fault { what, when }
}

/// Whether the callers of a node drop calls that get no answer. A closed connection would be
/// noticed before their timer.
fn is_dropped(vector: &TreeVector, name: &str) -> Result<bool, Unsupported> {
    let calls = vector.calls();
    let callers = calls.iter().filter(|(_, callees)| callees.contains(&name));
    let mut drops = callers.map(|(caller, _)| vector.node(caller).drops);
    let first = drops.next().unwrap_or(false);
    match drops.all(|drops| drops == first) {
        true => Ok(first),
        false => Err(format!("{name} would be silent in two ways").into()),
    }
}

/// How long a handler waits for an answer of this node, in which handlers may wait themselves,
/// more than once.
fn patience(vector: &TreeVector, name: &str) -> Duration {
    let below = vector.calls()[name].iter().map(|callee| patience(vector, callee)).max();
    let below = below.unwrap_or(PATIENCE);
    if vector.node(name).drops { 4 * below } else { below }
}

/// Long enough that a request always reaches its callee, on a busy machine too.
const PATIENCE: Duration = Duration::from_millis(250);

/// The one error that no policy covers, in HTTP and in gRPC.
const EXCLUDED: [CallError; 2] = [CallError::Http(501), CallError::Grpc(15)];
