//! The agent of one service: what all layers and listeners of a process share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::{HeaderMap, HeaderName};
use onus_core::{Arm, EdgeId, Lot, Mode, Share, Timestamp};

use crate::call_facts::CallStart;
use crate::config::{AgentConfig, ConfigError};
use crate::correlator::{self, Correlator, Found, Token};
use crate::counters::Counter;
use crate::edges::{Edge, EdgeKey, EdgeTable};
use crate::guard::guard;
use crate::inbound::{Arrival, Inbound};
use crate::learning::Schedule;
use crate::outbound::Outbound;
use crate::procedures::ProcedureTable;
use crate::rules::CalleeRules;
use crate::switch::{Source, SwitchError, SwitchFile, Switchboard, Switches};
use crate::symbols::{Procedure, Symbol, Symbols};
use crate::trace_context;
use crate::wire::{self, Carried, ClaimHeaders};

/// The agent of one service.
///
/// Hosts report the same moments to it: a request arrives, a call starts, an attempt fails, an
/// answer is made. It never does I/O, never waits, and takes the time as an argument.
pub struct Agent {
    service: Arc<str>,
    silent_claims: bool,
    untrusted_callers: bool,
    claims: ClaimHeaders,
    symbols: Symbols,
    procedures: ProcedureTable,
    edges: EdgeTable,
    switches: Switchboard,
    correlator: Correlator<Inbound>,
    /// Calls that could not be tied to a request, of the whole service.
    untied: AtomicU64,
    /// Calls whose ids several requests have.
    pub(crate) ambiguous: Counter,
    /// Requests of untrusted callers that brought what only trusted ones may say.
    pub(crate) forged: Counter,
    /// Decisions that panicked.
    pub(crate) faults: Counter,
    pub(crate) overflowing: Overflowing,
    pub(crate) schedule: Schedule,
    /// Whether the switch file cannot be read, or says what cannot be meant.
    pub(crate) switch_file_refused: AtomicBool,
}

/// Requests with more calls than are kept apart.
#[derive(Debug, Default)]
pub(crate) struct Overflowing {
    /// Calls that found no slot in their request.
    pub(crate) calls: Counter,
    /// Failed calls that are not remembered for repeats and origins.
    pub(crate) failed_calls: Counter,
}

impl Agent {
    /// An agent for `config`. `seed` are random bits; tokens of two processes differ by them.
    ///
    /// # Errors
    ///
    /// The first value of the configuration that cannot be meant.
    pub fn new(config: &AgentConfig, seed: u64, now: Timestamp) -> Result<Arc<Self>, ConfigError> {
        let rules = config.check()?;
        let limits = config.limits;
        let correlator_limits = correlator::Limits {
            live: limits.live_requests,
            linger: limits.linger,
            ..Default::default()
        };
        // First and with room of their own, so that nothing else takes a policy out of force.
        let configured: Vec<&str> = rules.iter().flat_map(CalleeRules::names).collect();
        let symbols = Symbols::new(limits.names + configured.len());
        for name in configured {
            let _ = symbols.intern(name);
        }
        let agent = Self {
            service: config.service.as_str().into(),
            silent_claims: config.silent_claims,
            untrusted_callers: config.untrusted_callers,
            claims: ClaimHeaders { alias: config.claim_alias.clone() },
            symbols,
            procedures: ProcedureTable::new(limits.procedures),
            edges: EdgeTable::new(limits.edges, rules),
            switches: Switchboard::new(config.mode),
            correlator: Correlator::new(correlator_limits, seed),
            untied: AtomicU64::new(0),
            ambiguous: Counter::default(),
            forged: Counter::default(),
            faults: Counter::default(),
            overflowing: Overflowing::default(),
            schedule: Schedule::new(now),
            switch_file_refused: AtomicBool::new(false),
        };
        agent.tell_start();
        Ok(Arc::new(agent))
    }

    /// A request for `procedure` arrives with these headers. `bits` are random, for the lot of a
    /// request without a trace id; `now` is asked where the request says how much time it allows.
    /// Onus's own headers are taken out: the application must not copy them.
    #[inline]
    pub fn request_arrived(
        self: &Arc<Self>,
        headers: &mut HeaderMap,
        procedure: Procedure,
        bits: u64,
        now: impl Fn() -> Timestamp,
    ) -> Inbound {
        // A service that makes no call learns nothing, and still has a policy to name that nobody
        // uses.
        if bits.is_multiple_of(TICK_EVERY) {
            self.tick(now());
        }
        let mode = self.mode();
        let mut arrival = Arrival {
            procedure: self.procedures.find(procedure),
            mode,
            lot: lot(mode, headers, bits),
            marked: false,
            attempt: 1,
            deadline: None,
            untied_before: self.untied_calls(),
        };
        let is_stranger = self.untrusted_callers && mode != Mode::Off;
        if is_stranger && self.claims.strip_untrusted(headers) {
            self.forged.add();
        }
        let carried = Carried::by(headers);
        if carried.time && mode.arm(arrival.lot, 0).hands_on_time() {
            let allowed = wire::time_allowed(headers);
            arrival.deadline = allowed.map(|allowed| now().saturating_add(allowed));
        }
        if carried.attempt_or_mark {
            arrival.attempt = wire::attempt_seen(headers);
            if mode != Mode::Off {
                arrival.marked = wire::is_marked(headers);
                wire::write_mark(headers, false);
                wire::write_attempt(headers, 1);
            }
        }
        Inbound::new(self.clone(), arrival)
    }

    /// Files a request under a token, and under the ids that its calls may carry as well, so that
    /// [`Self::inbound_of`] finds it; once, whoever else asks again. `None` where too many requests
    /// are live, or this one is over: its calls are then context-lost.
    pub fn file<'a>(
        &self,
        inbound: &Inbound,
        ids: impl Iterator<Item = &'a [u8]>,
        now: Timestamp,
    ) -> Option<Token> {
        if let Some(&token) = inbound.token().get() {
            return Some(token).filter(|_| !inbound.is_over());
        }
        let token = self.correlator.open(ids, inbound.clone(), now)?;
        let filed = *inbound.token().get_or_init(|| token);
        if filed != token {
            // Another thread was faster, and nobody would close this entry.
            self.correlator.close(token, false, now);
        } else if inbound.is_over() {
            // Whoever ended the request may not have seen the token. Its ids linger, as calls may
            // be under way.
            self.correlator.close(token, true, now);
            return None;
        }
        Some(filed)
    }

    /// The request that a call with this token belongs to.
    #[must_use]
    pub fn inbound_of(&self, token: Token) -> Option<Inbound> {
        self.correlator.find(token)
    }

    /// The request that a call with this fallback id belongs to, if that is certain.
    #[must_use]
    pub fn inbound_by_id(&self, id: &[u8]) -> Found<Inbound> {
        self.correlator.find_by_id(id)
    }

    /// The request that a call with these fallback ids belongs to, if that is certain: the first id
    /// decides that any request has. Calls with ids that several requests have are counted.
    pub fn inbound_by_ids<'a>(&self, ids: impl Iterator<Item = &'a [u8]>) -> Option<Inbound> {
        for id in ids {
            match self.correlator.find_by_id(id) {
                Found::One(inbound) => return Some(inbound),
                Found::Ambiguous => {
                    self.ambiguous.add();
                    return None;
                }
                Found::Unknown => {}
            }
        }
        None
    }

    #[inline]
    pub(crate) fn forget(&self, inbound: &Inbound, cancelled: bool, now: Timestamp) {
        if let Some(&token) = inbound.token().get() {
            self.correlator.close(token, cancelled, now);
        }
    }

    /// The edge from the procedure that `inbound` serves to `procedure` of `callee`. An inbound
    /// request of another agent counts as none. `now` is asked where the edge is new.
    pub fn edge(
        &self,
        inbound: Option<&Inbound>,
        callee: Symbol,
        procedure: Procedure,
        now: impl FnOnce() -> Timestamp,
    ) -> Arc<Edge> {
        let own = inbound.filter(|inbound| inbound.is_of(self));
        let caller = own.map_or(Procedure::NONE, Inbound::procedure);
        self.edges.find(EdgeKey { caller, callee, procedure }, &self.symbols, now)
    }

    /// A logical call starts on `edge`, for `inbound` if it can be tied to a request. An inbound
    /// request of another agent counts as none. `now` is asked where the edge may retry or the call
    /// has a time limit, and for a few others.
    pub fn call_started(
        self: &Arc<Self>,
        edge: Arc<Edge>,
        inbound: Option<Inbound>,
        start: CallStart,
        headers: &HeaderMap,
        now: impl Fn() -> Timestamp,
    ) -> Outbound {
        if edge.has_budget() {
            let now = now();
            self.tick(now);
            if edge.is_drain_due(now) {
                self.guarded(|| edge.drain_if_free(now));
            }
        } else if start.bits.is_multiple_of(TICK_EVERY) {
            self.tick(now());
        }
        let inbound = inbound.filter(|inbound| inbound.is_of(self));
        Outbound::new(self, edge, inbound, start, headers, now)
    }

    /// Takes another configuration over while calls go on. Budgets, classes and counters last; a
    /// budget is a new one only where its own values are others. Calls under way keep to theirs.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, or that needs a new agent; nothing is changed then.
    pub fn reconfigure(&self, config: &AgentConfig, now: Timestamp) -> Result<(), ConfigError> {
        let rules = config.check()?;
        for (what, same) in [
            ("service name", *config.service == *self.service),
            ("setting silent claims", config.silent_claims == self.silent_claims),
            ("trust in callers", config.untrusted_callers == self.untrusted_callers),
            ("claim alias", config.claim_alias == self.claims.alias),
        ] {
            if !same {
                return Err(ConfigError::NeedsRestart { what });
            }
        }
        for name in rules.iter().flat_map(CalleeRules::names) {
            let _ = self.symbols.intern(name);
        }
        self.edges.reconfigure(rules, &self.symbols, now);
        self.switches.build_anew(config.mode);
        self.tell_start();
        Ok(())
    }

    /// What `source` says of mode and shield, all of it: what it said before is forgotten.
    pub fn switch(&self, source: Source, switches: &Switches, now: Timestamp) {
        let before = self.mode();
        if self.switches.set(source, switches, now) {
            self.tell_switch(source, switches, before);
        }
    }

    /// The watched switch file, each time it changes.
    ///
    /// # Errors
    ///
    /// The first line that cannot be meant; what was in force stays in force.
    pub fn switch_file(&self, file: SwitchFile<'_>, now: Timestamp) -> Result<(), SwitchError> {
        let read = file.switches();
        let refused = !matches!(read, Ok(Some(_)));
        self.switch_file_refused.store(refused, Ordering::Relaxed);
        if let Some(switches) = read? {
            self.switch(Source::File, &switches, now);
        }
        Ok(())
    }

    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.switches.mode()
    }

    /// Whether `traceparent` says which requests ownership is in force for: where it is for a share.
    /// Nothing else of it is read by the agent.
    #[must_use]
    pub fn reads_traces(&self) -> bool {
        goes_by_trace(self.mode())
    }

    /// How much longer the shield holds; zero without one.
    #[must_use]
    pub fn shield_left(&self, now: Timestamp) -> Duration {
        self.switches.shield_until().saturating_since(now)
    }

    /// The name of the service.
    #[must_use]
    pub fn service(&self) -> &Arc<str> {
        &self.service
    }

    /// The second name under which claims are read and written, if there is one.
    #[must_use]
    pub fn claim_alias(&self) -> Option<&HeaderName> {
        self.claims.alias.as_ref()
    }

    /// The names of callees, methods and routes.
    #[must_use]
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The edges that this service has used so far.
    pub fn edges(&self) -> impl Iterator<Item = Arc<Edge>> {
        self.edges.iter()
    }

    /// A fault of the host's own, which it has caught: counted with those of decisions.
    pub fn count_fault(&self) {
        self.faults.add();
    }

    /// Runs a decision; `None`, counted, if it panicked.
    pub(crate) fn guarded<T>(&self, decision: impl FnOnce() -> T) -> Option<T> {
        let decided = guard(decision);
        if decided.is_none() {
            self.faults.add();
        }
        decided
    }

    pub(crate) fn edge_table(&self) -> &EdgeTable {
        &self.edges
    }

    pub(crate) fn edge_by_id(&self, id: EdgeId) -> Option<Arc<Edge>> {
        self.edges.get(id)
    }

    pub(crate) fn procedures(&self) -> &ProcedureTable {
        &self.procedures
    }

    pub(crate) fn switches(&self) -> &Switchboard {
        &self.switches
    }

    pub(crate) fn claims(&self) -> &ClaimHeaders {
        &self.claims
    }

    pub(crate) fn trusts_callers(&self) -> bool {
        !self.untrusted_callers
    }

    pub(crate) fn silent_claims(&self) -> bool {
        self.silent_claims
    }

    pub(crate) fn correlator(&self) -> &Correlator<Inbound> {
        &self.correlator
    }

    /// A call that may belong to a request of this agent was made where nobody can tie it to one.
    pub fn untied_elsewhere(&self) {
        self.untied.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn untied_calls(&self) -> u64 {
        self.untied.load(Ordering::Relaxed)
    }

    pub(crate) fn count_untied(&self, edge: &Edge) {
        self.untied.fetch_add(1, Ordering::Relaxed);
        edge.lasting.counters.untied.add();
    }

    pub(crate) fn arm_of_untied(&self, headers: &HeaderMap, bits: u64, halvings: u8) -> Arm {
        let mode = self.mode();
        mode.arm(lot(mode, headers, bits), halvings)
    }
}

/// One request and one call in so many look whether a minute is over: to look at the clock costs
/// as much as all the counting.
const TICK_EVERY: u64 = 16;

/// The lot of a request tree. Only a partial share looks at it, so only that reads the trace id.
fn lot(mode: Mode, headers: &HeaderMap, bits: u64) -> Lot {
    let trace_id = goes_by_trace(mode).then(|| trace_context::trace_id(headers)).flatten();
    trace_id.map_or_else(|| Lot::of_random(bits), Lot::of_trace_id)
}

fn goes_by_trace(mode: Mode) -> bool {
    match mode {
        Mode::Enforce(share) => share != Share::ALL,
        Mode::Off | Mode::Observe => false,
    }
}
