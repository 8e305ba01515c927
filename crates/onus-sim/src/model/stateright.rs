//! The same trees as a state machine, checked by another model checker: both must see the same.
//!
//! Nothing is shared with the enumerator but the tree and the types of the core. Here a request is
//! a frame on a stack and every step is a transition, so that states of different traces meet.

use std::collections::BTreeSet;

use onus_core::{
    Arm, Backoff, CallError, Circumstances, Claim, Draw, EdgeId, EdgePolicy, EdgeState, Failure,
    InboundCall, MethodKind, OutboundCall, Pushback, RetryPolicy, SlotId, Terms, Timestamp,
    Verdict,
};
use stateright::{Checker, Model, Property, StateRecorder};

use super::choice::Tape;
use super::config::Config;
use super::rules::Rules;
use super::run::Runner;
use super::slice::Slice;
use super::topology::Fan;

/// The requests that are being served, outermost first, and what has happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    frames: Vec<Frame>,
    tally: Tally,
}

/// What a trace comes to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Tally {
    requests: Vec<u32>,
    own: u64,
    lost: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    node: usize,
    inbound: InboundCall,
    /// Calls that have ended.
    called: usize,
    survives: bool,
    open: Option<(SlotId, OutboundCall)>,
}

/// What the top frame does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Send,
    Answer,
    FailOwn,
    Lose,
}

struct Tree<'c>(&'c Config);

impl Tree<'_> {
    fn frame(&self, node: usize, marked: bool) -> Frame {
        let inbound = InboundCall::new(Arm::Enforce, marked);
        Frame { node, inbound, called: 0, survives: true, open: None }
    }

    /// The edge of the call that is next, or under way.
    fn edge(&self, frame: &Frame) -> Option<usize> {
        let stops = !frame.survives && self.0.topology.fan(frame.node) == Fan::Sequence;
        let next = self.0.topology.calls(frame.node).get(frame.called);
        next.copied().filter(|_| frame.open.is_some() || !stops)
    }

    fn policy(&self, edge: usize) -> EdgePolicy {
        let mut retry = RetryPolicy::new(self.0.edges[edge].retries.attempts());
        if let Some(retry) = &mut retry {
            (retry.backoff, retry.budget, retry.probes) = (Backoff::NONE, None, false);
        }
        EdgePolicy { retry, ..EdgePolicy::default() }
    }

    fn send(&self, state: &mut State) -> Option<()> {
        let frame = state.frames.last_mut()?;
        let edge = self.edge(frame)?;
        let terms = Terms {
            arm: Arm::Enforce,
            marked: frame.inbound.is_marked(),
            method: MethodKind::Safe,
            deadline: None,
        };
        if frame.open.is_none() {
            let class = self.0.edges[edge].held;
            let slot = frame.inbound.on_started(EdgeId(edge as u32), class)?;
            frame.open = Some((slot, OutboundCall::new(terms)));
        }
        let (slot, outbound) = frame.open.as_mut()?;
        let marked = outbound.mark();
        outbound.on_sent();
        frame.inbound.on_attempt(*slot, outbound.tries());
        let callee = self.0.topology.edges()[edge].to;
        state.tally.requests[callee] += 1;
        state.frames.push(self.frame(callee, marked));
        Some(())
    }

    /// The top frame is over; its caller goes on with `reply`, which is an error if it is one.
    fn reply(&self, state: &mut State, reply: Result<(), Option<Claim>>) -> Option<()> {
        state.frames.pop();
        let Some(frame) = state.frames.last_mut() else { return Some(()) };
        let edge = self.edge(frame)?;
        let policy = self.policy(edge);
        let mut held = EdgeState::new(&policy);
        let (now, draw) = (Timestamp::ZERO, Draw::from_bits(0xffff));
        let (slot, outbound) = frame.open.as_mut()?;
        let Err(claim) = reply else {
            outbound.on_success(&policy, &mut held, now);
            frame.inbound.on_attempt(*slot, outbound.tries());
            frame.inbound.on_ok(*slot);
            (frame.called, frame.open) = (frame.called + 1, None);
            return Some(());
        };
        let error = if claim.is_some() { CallError::Http(500) } else { CallError::Timeout };
        let failure = Failure {
            error,
            claim,
            attempt: None,
            pushback: Pushback::None,
            replayable: true,
            body_broke: false,
        };
        let verdict = outbound.on_failure(&failure, &policy, &mut held, now, draw);
        frame.inbound.on_attempt(*slot, outbound.tries());
        if let Verdict::Stop(stop) = verdict {
            frame.inbound.on_failed(*slot, stop);
            frame.survives &= self.0.edges[edge].open;
            (frame.called, frame.open) = (frame.called + 1, None);
        }
        Some(())
    }
}

impl Model for Tree<'_> {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let mut requests = vec![0; self.0.topology.nodes()];
        requests[0] = 1;
        let tally = Tally { requests, own: 0, lost: 0 };
        vec![State { frames: vec![self.frame(0, false)], tally }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Step>) {
        let Some(frame) = state.frames.last() else { return };
        if self.edge(frame).is_some() {
            actions.push(Step::Send);
            return;
        }
        actions.push(Step::Answer);
        if frame.survives && self.0.faults.own {
            actions.push(Step::FailOwn);
        }
        if frame.node != 0 && self.0.faults.lost {
            actions.push(Step::Lose);
        }
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = last.clone();
        let frame = state.frames.last()?;
        let (node, survives) = (frame.node, frame.survives);
        let claim = frame.inbound.claim(Circumstances::default())?.claim;
        match step {
            Step::Send => self.send(&mut state)?,
            Step::Answer if survives => self.reply(&mut state, Ok(()))?,
            Step::Answer => self.reply(&mut state, Err(Some(claim)))?,
            Step::FailOwn => {
                state.tally.own |= 1 << node;
                self.reply(&mut state, Err(Some(claim)))?;
            }
            Step::Lose => {
                state.tally.lost |= 1 << node;
                self.reply(&mut state, Err(None))?;
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![Property::always("no more than R^min(d, c) requests", |tree: &Self, state: &State| {
            let culprits = (state.tally.own | state.tally.lost).count_ones();
            let requests = state.tally.requests.iter().enumerate();
            let held_open = tree.0.edges.iter().any(|edge| !edge.open && !edge.held.is_blamed());
            let depth = |node| tree.0.topology.depth(node);
            held_open
                || requests
                    .into_iter()
                    .all(|(node, &got)| got <= 2_u32.pow(culprits.min(depth(node))))
        })]
    }
}

fn by_stateright(config: &Config) -> BTreeSet<Tally> {
    // The checker wants a model that lives for ever.
    let config: &'static Config = Box::leak(Box::new(config.clone()));
    let (recorder, states) = StateRecorder::new_with_accessor();
    let checker = Tree(config).checker().visitor(recorder).spawn_bfs().join();
    checker.assert_properties();
    let ended = states().into_iter().filter(|state| state.frames.is_empty());
    ended.map(|state| state.tally).collect()
}

fn by_enumeration(config: &Config) -> BTreeSet<Tally> {
    let mut tallies = BTreeSet::new();
    let mut runner = Runner::new(config, Rules::Shipped, Tape::default(), ());
    loop {
        runner.trace();
        let seen = &runner.seen;
        let requests = seen.requests.clone();
        tallies.insert(Tally { requests, own: seen.own.0, lost: seen.lost.0 });
        if !runner.tape.advance() {
            return tallies;
        }
    }
}

#[test]
fn another_model_checker_sees_the_same() {
    let mut compared = 0;
    for (slice, nodes, step) in [
        ("policies-class", 3, 1),
        ("class-knowledge", 3, 1),
        ("lost-answers", 3, 1),
        ("silence", 4, 3),
    ] {
        let space = Slice::named(slice).expect("a slice of this name").space(nodes);
        for index in (0..space.count()).step_by(step) {
            let config = space.config(index).expect("a number below the count");
            let plain = config.edges.iter().all(|edge| {
                edge.retries.are_made() || edge.retries == super::config::Retries::NotConfigured
            });
            if !plain || config.switches != super::config::Switches::default() {
                continue;
            }
            let (theirs, ours) = (by_stateright(&config), by_enumeration(&config));
            assert_eq!(theirs, ours, "{slice}.{nodes}.{index}");
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared} configurations");
}
