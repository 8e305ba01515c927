//! One node's call of another: the attempts of Onus, of a layer below it and of the handler's own
//! loop.

use onus_core::{
    Arm, CallError, Claim, Draw, EdgeId, Failure, InboundCall, MethodKind, OutboundCall, Pushback,
    SlotId, Stop, Terms, Timestamp, Verdict,
};

use super::tree::{Reply, Request, Tree};
use crate::tree::{Node, RetriesBy};

/// The two ends of a call, and the arm of the request being served.
#[derive(Clone, Copy)]
pub(super) struct Hop<'a> {
    pub(super) from: &'a str,
    pub(super) to: &'a str,
    pub(super) arm: Arm,
}

/// Makes the call, as often as the handler does; whether it is answered in the end.
pub(super) fn call<'a>(
    tree: &mut Tree<'a>,
    hop: Hop<'a>,
    node: &Node,
    inbound: &mut InboundCall,
) -> bool {
    let class = tree.edges[&(hop.from, hop.to)].class();
    let tied = node.onus && !node.context_lost;
    let slot = if tied { inbound.on_started(EdgeId(0), class) } else { None };
    let terms = Terms {
        arm: hop.arm,
        marked: tied && inbound.is_marked(),
        method: MethodKind::Safe,
        deadline: None,
    };
    if let Some(budget) = &mut edge(tree, hop).state.budget {
        budget.on_calls(1, NOW);
    }
    let mut outbound = OutboundCall::new(terms);
    for round in 0..node.tries {
        if let (1.., Some(slot)) = (round, slot) {
            outbound = OutboundCall::repeated(terms, inbound.on_repeated(slot));
        }
        match attempts(tree, hop, node, &mut outbound, |tries| {
            if let Some(slot) = slot {
                inbound.on_attempt(slot, tries);
            }
        }) {
            End::Ok => {
                tell(slot, inbound, InboundCall::on_ok);
                return true;
            }
            End::Failed(stop) => tell(slot, inbound, |inbound, slot| inbound.on_failed(slot, stop)),
            End::Dropped => tell(slot, inbound, InboundCall::on_abandoned),
        }
    }
    false
}

fn tell(
    slot: Option<SlotId>,
    inbound: &mut InboundCall,
    tell: impl FnOnce(&mut InboundCall, SlotId),
) {
    if let Some(slot) = slot {
        tell(inbound, slot);
    }
}

/// How one round of attempts ended.
enum End {
    Ok,
    Failed(Stop),
    Dropped,
}

/// The attempts that the handler sees as one; `report` is told how they stand after each event.
fn attempts<'a>(
    tree: &mut Tree<'a>,
    hop: Hop<'a>,
    node: &Node,
    outbound: &mut OutboundCall,
    mut report: impl FnMut(&onus_core::Tries),
) -> End {
    loop {
        let mark = outbound.mark() && node.onus;
        outbound.on_sent();
        report(outbound.tries());
        // In mode off nothing says which attempt it is.
        let attempt = if hop.arm.is_off() { 1 } else { outbound.tries().attempts };
        let reply = through_layer(tree, hop, node, Request { mark, attempt });
        if node.drops && matches!(reply, Reply::Silent) {
            return End::Dropped;
        }
        let held = edge(tree, hop);
        let (error, claim, attempt) = match reply {
            Reply::Ok => {
                outbound.on_success(&held.policy, &mut held.state, NOW);
                report(outbound.tries());
                return End::Ok;
            }
            Reply::Error { error, claim, attempt, .. } => (error, claim, attempt),
            Reply::Silent => (CallError::Timeout, None, None),
        };
        let failure = failure(error, claim, attempt, held.setup.replayable);
        let verdict = outbound.on_failure(&failure, &held.policy, &mut held.state, NOW, DRAW);
        report(outbound.tries());
        match verdict {
            Verdict::Retry(_) if tree.runs_away() => return End::Failed(Stop::Exhausted),
            Verdict::Retry(_) => {}
            Verdict::Stop(stop) => return End::Failed(stop),
        }
    }
}

fn failure(
    error: CallError,
    claim: Option<Claim>,
    attempt: Option<u32>,
    replayable: bool,
) -> Failure {
    Failure { error, claim, attempt, pushback: Pushback::None, replayable, body_broke: false }
}

/// One attempt as the service sees it: a layer below repeats it with the same headers, and counts.
fn through_layer<'a>(tree: &mut Tree<'a>, hop: Hop<'a>, node: &Node, request: Request) -> Reply {
    let (attempts, obeys) = match node.retries {
        RetriesBy::Onus => (1, false),
        RetriesBy::BlindLayer => (edge(tree, hop).setup.attempts.unwrap_or(0), false),
        RetriesBy::ObedientLayer => (edge(tree, hop).setup.attempts.unwrap_or(0), true),
    };
    let mut reply = tree.handle(hop.to, request);
    for attempt in 2..=attempts {
        match reply {
            Reply::Ok => break,
            Reply::Error { veto: true, .. } if obeys => break,
            Reply::Error { .. } | Reply::Silent => {}
        }
        let attempt = request.attempt.max(attempt);
        reply = tree.handle(hop.to, Request { attempt, ..request });
    }
    reply
}

fn edge<'t, 'a>(tree: &'t mut Tree<'a>, hop: Hop<'a>) -> &'t mut super::tree::HeldEdge {
    tree.edges.get_mut(&(hop.from, hop.to)).expect("the tree has an edge for each call")
}

/// Trees have no time: nothing waits, nothing expires.
const NOW: Timestamp = Timestamp::ZERO;

/// A draw that passes every gate; edges of trees have no gate and no probes.
const DRAW: Draw = Draw::from_bits(0);
