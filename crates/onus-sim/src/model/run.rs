//! One trace: a request to the root, answered by nodes whose every decision is the core's.
//!
//! Requests are function calls. Parallel calls are made one after another without stopping at a
//! failure: no decision looks at the order in which they end.

use onus_core::{Circumstances, Claim, ClaimVerdict, InboundCall};

use super::choice::Tape;
use super::config::Config;
use super::held::HeldEdge;
use super::paths::{Beside, Paths};
use super::rules::{Criteria, Rules};
use super::seen::{Event, Fate, Log, Nodes, Seen};
use super::topology::Fan;
use super::worst::Known;

/// Runs the traces of one configuration.
pub(crate) struct Runner<'c, L> {
    pub(super) config: &'c Config,
    pub(super) rules: Rules,
    pub(super) held: Vec<HeldEdge>,
    pub(crate) tape: Tape,
    pub(crate) seen: Seen,
    pub(crate) log: L,
    coupling: Vec<(u64, u8)>,
    /// What callees do.
    pub(super) callees: Callees<'c>,
}

/// Where a runner gets the answers of callees from.
#[derive(Clone, Copy)]
pub(super) enum Callees<'c> {
    /// They are run.
    Run,
    /// Any answer that is known to be possible, with the most requests that it can cost.
    Known(&'c Known),
    /// They are run to the answer that was chosen, at that cost.
    Scripted(&'c Known),
}

impl<'c, L: Log> Runner<'c, L> {
    pub(crate) fn new(config: &'c Config, rules: Rules, tape: Tape, log: L) -> Self {
        let mut runner = Self {
            config,
            rules,
            held: Vec::new(),
            tape,
            seen: Seen::default(),
            log,
            coupling: Vec::new(),
            callees: Callees::Run,
        };
        runner.set_up(config);
        runner
    }

    /// Goes on with another configuration, from its first trace.
    pub(crate) fn set_up(&mut self, config: &'c Config) {
        self.config = config;
        self.held.clear();
        let edges = config.topology.edges().iter().zip(&config.edges);
        let held = edges.map(|(ends, setting)| {
            HeldEdge::new(*setting, config.roles[ends.from], config, self.rules)
        });
        self.held.extend(held);
    }

    /// Runs one trace, as the tape says.
    pub(crate) fn trace(&mut self) {
        self.coupling.clear();
        if self.config.faults.coupled {
            let rules = std::mem::replace(&mut self.rules, Rules::NoOwnership);
            self.run();
            self.rules = rules;
            std::mem::swap(&mut self.seen.baseline, &mut self.seen.requests);
            self.log.clear();
        }
        self.run();
    }

    fn run(&mut self) {
        self.seen.clear(self.config.topology.nodes());
        let reply = self.handle(0, Request { marked: false, attempt: 1, place: 1 });
        if let Answer::Error { .. } = reply.answer {
            self.seen.settled.add(reply.below.paths);
        }
    }

    /// A callee answers.
    pub(super) fn ask(&mut self, node: usize, request: Request) -> Reply {
        let (known, is_script) = match self.callees {
            Callees::Run => return self.handle(node, request),
            Callees::Known(known) => (known, false),
            Callees::Scripted(known) => (known, true),
        };
        let ways = known.ways(node, request.marked);
        // A node of a checked tree has an answer: at least that all goes well.
        let chosen = self.tape.choose(u8::try_from(ways.len()).unwrap_or(u8::MAX));
        let way = &ways[usize::from(chosen)];
        if is_script {
            let tape = std::mem::replace(&mut self.tape, Tape::of(&way.tape));
            let reply = self.handle(node, request);
            self.tape = tape;
            return reply;
        }
        let requests = &mut self.seen.requests[known.target];
        *requests = requests.saturating_add(way.requests);
        let answer = match way.answer {
            Answer::Error { claim, attempt, vetoes } => {
                let attempt = attempt.map(|_| request.attempt);
                Answer::Error { claim, attempt, vetoes }
            }
            Answer::Ok | Answer::Silent => way.answer,
        };
        Reply { answer, below: Below { used: false, paths: Paths::default() } }
    }

    /// A node handles a request.
    pub(super) fn handle(&mut self, node: usize, request: Request) -> Reply {
        self.seen.requests[node] += 1;
        let role = self.config.roles[node];
        let arm = self.rules.arm(role.arm());
        let inbound = InboundCall::new(arm, request.marked && !arm.is_off());
        let mut serving = Serving { inbound, place: request.place, ..Serving::default() };
        let survives = self.call_all(node, &mut serving);
        let fate = self.fate(node, survives, request.place);
        let mut below = Below { used: serving.used, paths: Paths::default() };
        match fate {
            Fate::Ok => {
                self.tell(Event::Answers { node, fate, claim: None });
                return Reply { answer: Answer::Ok, below };
            }
            Fate::Own => {
                below.paths = Paths::CULPRIT;
                if serving.swallowed {
                    below.paths.beside = Beside::SWALLOWED_OWN;
                }
            }
            Fate::Passed => below.paths = serving.culprit_paths(),
            Fate::Lost => {
                self.tell(Event::Answers { node, fate, claim: None });
                below.paths = Paths::CULPRIT;
                return Reply { answer: Answer::Silent, below };
            }
        }
        let verdict = serving.inbound.claim(Circumstances {
            shield: false,
            silent_claims: self.config.switches.silent_claims,
            untied_calls: !role.ties() && serving.called,
        });
        let verdict = verdict.map(|verdict| self.rules.claim(verdict, &serving.criteria));
        self.seen.certificate_broken |= !below.used && verdict.is_some_and(is_unclaimed);
        let claim = verdict.map(|verdict| (verdict.claim, verdict.reason));
        self.tell(Event::Answers { node, fate, claim });
        let attempt = (!arm.is_off()).then_some(request.attempt);
        let answer = Answer::Error {
            claim: verdict.map(|verdict| verdict.claim),
            attempt,
            vetoes: verdict.is_some_and(|verdict| verdict.vetoes),
        };
        Reply { answer, below }
    }

    /// The node calls its callees; whether it survives what they answer.
    fn call_all(&mut self, node: usize, serving: &mut Serving) -> bool {
        let config = self.config;
        let fan = config.topology.fan(node);
        let mut survives = true;
        for &edge in config.topology.calls(node) {
            serving.called = true;
            let ok = self.call(edge, serving);
            survives &= ok || config.edges[edge].open;
            match fan {
                Fan::Sequence if !survives => break,
                Fan::Fallback if ok => break,
                Fan::Sequence | Fan::Parallel | Fan::Fallback => {}
            }
        }
        survives
    }

    /// The adversary decides how the node's work ends. Nobody waits for the root's answer.
    fn fate(&mut self, node: usize, survives: bool, place: u64) -> Fate {
        let faults = self.config.faults;
        let may = self.may_fail(node);
        let (own, lost) = (may && faults.own && survives, may && faults.lost && node != 0);
        let through = if survives { Fate::Ok } else { Fate::Passed };
        let options = 1 + u8::from(own) + u8::from(lost);
        let chosen = match faults.always {
            true => options - 1,
            false => self.choose_at(place, options),
        };
        let fate = match chosen {
            0 => through,
            1 if own => Fate::Own,
            _ => Fate::Lost,
        };
        let seen = &mut self.seen;
        match fate {
            Fate::Ok => seen.spared.add(node),
            Fate::Own => seen.own.add(node),
            Fate::Passed => {}
            Fate::Lost => seen.lost.add(node),
        }
        match fate {
            Fate::Ok | Fate::Passed => seen.answered.add(node),
            Fate::Own => {
                seen.answered.add(node);
                seen.failures += 1;
            }
            Fate::Lost => seen.failures += 1,
        }
        fate
    }

    /// Whether something may go wrong at the node once more.
    pub(super) fn may_fail(&self, node: usize) -> bool {
        let faults = self.config.faults;
        if !Nodes(faults.among).has(node) {
            return false;
        }
        let culprits = self.seen.culprits();
        let known = culprits.has(node) || culprits.count() < faults.culprits_max;
        known && self.seen.failures < faults.failures_max
    }

    /// A choice that is the same in both runs of coupled outcomes.
    fn choose_at(&mut self, place: u64, options: u8) -> u8 {
        if options == 1 {
            return 0;
        }
        if !self.config.faults.coupled {
            return self.tape.choose(options);
        }
        if let Some(&(_, taken)) = self.coupling.iter().find(|(known, _)| *known == place) {
            return taken.min(options - 1);
        }
        let taken = self.tape.choose(options);
        self.coupling.push((place, taken));
        taken
    }

    pub(super) fn tell(&mut self, event: Event) {
        if L::READS {
            self.log.add(event);
        }
    }
}

fn is_unclaimed(verdict: ClaimVerdict) -> bool {
    verdict.claim == Claim::Unclaimed
}

/// A request as the callee sees it.
#[derive(Clone, Copy)]
pub(super) struct Request {
    pub(super) marked: bool,
    /// The number of the attempt, by whatever header says it.
    pub(super) attempt: u32,
    /// The place in the tree of all attempts; the same with other rules.
    pub(super) place: u64,
}

/// How an attempt ended.
#[derive(Clone, Copy)]
pub(super) struct Reply {
    pub(super) answer: Answer,
    pub(super) below: Below,
}

/// What the caller sees of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Ok,
    Error { claim: Option<Claim>, attempt: Option<u32>, vetoes: bool },
    Silent,
}

/// What the caller does not see of a reply, and properties speak of.
#[derive(Clone, Copy)]
pub(super) struct Below {
    /// Whether a retry was made or deliberately refused.
    pub(super) used: bool,
    /// The culprit paths of an error.
    pub(super) paths: Paths,
}

/// A request being served, and what properties want to know of its calls.
pub(super) struct Serving {
    pub(super) inbound: InboundCall,
    pub(super) place: u64,
    pub(super) criteria: Criteria,
    /// Whether a retry was made or deliberately refused in or below the calls so far.
    pub(super) used: bool,
    /// Whether a failure on an edge not known to be fail-open was survived.
    pub(super) swallowed: bool,
    /// The culprit paths of the calls that were not survived, and how many those are.
    pub(super) paths: Paths,
    pub(super) fatal: u32,
    called: bool,
}

impl Default for Serving {
    fn default() -> Self {
        Self {
            inbound: InboundCall::new(onus_core::Arm::Off, false),
            place: 0,
            criteria: Criteria::default(),
            used: false,
            swallowed: false,
            paths: Paths::default(),
            fatal: 0,
            called: false,
        }
    }
}

impl Serving {
    /// The paths below an error that the node did not make itself.
    fn culprit_paths(&self) -> Paths {
        let mut paths = self.paths;
        if self.swallowed {
            paths.beside = paths.beside.with(Beside::SWALLOWED_OTHER);
        }
        if self.fatal > 1 {
            paths.beside = paths.beside.with(Beside::SEVERAL);
        }
        paths
    }
}
