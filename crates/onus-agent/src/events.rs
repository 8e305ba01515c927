//! What people read in the log. Facts as fields; requests at `debug`, what an operator should
//! read at `info` and `warn`.

use std::collections::BTreeSet;

use onus_core::{BrakeEvent, CalleeClaim, ClaimReason, ClaimVerdict, Failure, Mode, Verdict};
use onus_learn::ClassFinding;

use crate::agent::Agent;
use crate::edges::{Edge, Learned};
use crate::inbound::{Inbound, Origin};
use crate::outbound::Outbound;
use crate::rules::CalleeRules;
use crate::switch::{Source, Switches};

/// The most callees that one line names.
const NAMED_MAX: usize = 10;

impl Agent {
    /// The first line: what this service will do.
    pub(crate) fn tell_start(&self) {
        let rules = self.edge_table().rules();
        let names = |keep: fn(&CalleeRules) -> bool| {
            let kept: Vec<&str> = rules
                .iter()
                .filter(|rules| keep(rules))
                .map(|rules| rules.callee.as_str())
                .collect();
            if kept.is_empty() { "none".to_owned() } else { kept.join(", ") }
        };
        let suppresses = match self.mode() {
            Mode::Off => "ownership is off: nothing is sent, read or suppressed",
            Mode::Observe => "observing: no retry is suppressed",
            Mode::Enforce(_) => "enforcing: retries of unclaimed errors are suppressed",
        };
        tracing::info!(
            service = %self.service(),
            mode = self.mode().as_str(),
            retries = names(|rules| rules.has_policy()),
            foreign_retries = names(|rules| rules.all.policy.declared.is_some()),
            "onus: {suppresses}"
        );
    }

    /// Policies that nothing has used, beside what was called: a mistyped name, most often.
    pub(crate) fn tell_unused_policies(&self) {
        let called: BTreeSet<&str> =
            self.edges().map(|edge| &**self.symbols().name(edge.key.callee)).collect();
        for rules in self.edge_table().rules().iter().filter(|rules| rules.has_policy()) {
            if !called.contains(&*rules.callee) {
                tracing::warn!(
                    callee = rules.callee,
                    called = %called.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", "),
                    "onus: a retry policy names a callee that was not called in the first minute"
                );
            }
        }
    }

    pub(crate) fn tell_switch(&self, source: Source, switches: &Switches, before: Mode) {
        tracing::warn!(
            service = %self.service(),
            source = source.as_str(),
            mode = self.mode().as_str(),
            mode_before = before.as_str(),
            share_basis_points = match self.mode() {
                Mode::Enforce(share) => Some(share.basis_points()),
                Mode::Off | Mode::Observe => None,
            },
            shield_seconds = switches.shield.map(|time| time.as_secs()),
            who = switches.who,
            why = switches.why,
            "onus: switched"
        );
    }

    /// A retry made or not made.
    pub(crate) fn tell_verdict(&self, call: &Outbound, failure: &Failure, verdict: &Verdict) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        let edge = call.edge();
        let tries = call.call().tries();
        let (retried, reason) = match verdict {
            Verdict::Retry(retry) => (true, retry.cause.as_str()),
            Verdict::Stop(stop) => (false, stop.as_str()),
        };
        tracing::debug!(
            caller = %self.service(),
            callee = %self.symbols().name(edge.key.callee),
            procedure = %edge.key.procedure.display(self.symbols()),
            arm = call.arm().as_str(),
            error = %failure.error,
            retry = permission(tries.last),
            origin = call.origin().map(|origin| &*origin.service),
            attempts = tries.attempts,
            retried,
            reason,
            "onus: call failed"
        );
    }

    /// An error that this service answers with.
    pub(crate) fn tell_claim(&self, inbound: &Inbound, verdict: &ClaimVerdict, origin: &Origin) {
        if !tracing::enabled!(tracing::Level::DEBUG) {
            return;
        }
        tracing::debug!(
            service = %self.service(),
            procedure = %inbound.procedure().display(self.symbols()),
            arm = inbound.arm().as_str(),
            retry = if verdict.claim.is_unclaimed() { "closed" } else { "open" },
            cause = cause(verdict),
            origin = %origin.service,
            hops = origin.hops,
            reason = verdict.reason.as_str(),
            "onus: answered with an error"
        );
    }

    /// What changed when the class of an edge was looked at anew.
    pub(crate) fn tell_learned(&self, edge: &Edge, learned: &Learned) {
        if learned.class_changed {
            self.tell_class(edge, &learned.finding);
        }
        if learned.contradicted {
            self.tell_contradiction(edge, &learned.finding);
        }
    }

    fn tell_class(&self, edge: &Edge, finding: &ClassFinding) {
        tracing::info!(
            caller = %self.service(),
            caller_procedure = %edge.key.caller.display(self.symbols()),
            callee = %self.symbols().name(edge.key.callee),
            procedure = %edge.key.procedure.display(self.symbols()),
            class = finding.class.as_str(),
            "onus: edge class changed: {finding}"
        );
    }

    fn tell_contradiction(&self, edge: &Edge, finding: &ClassFinding) {
        let Some(contradiction) = finding.contradiction() else { return };
        tracing::warn!(
            caller = %self.service(),
            caller_procedure = %edge.key.caller.display(self.symbols()),
            callee = %self.symbols().name(edge.key.callee),
            procedure = %edge.key.procedure.display(self.symbols()),
            "onus: what is measured contradicts what was said: {contradiction}"
        );
    }

    /// Retries that nobody declared; told once for each edge.
    pub(crate) fn tell_foreign_retries(&self, edge: &Edge) {
        tracing::warn!(
            caller = %self.service(),
            callee = %self.symbols().name(edge.key.callee),
            procedure = %edge.key.procedure.display(self.symbols()),
            "onus: a layer below retries these calls, and no declaration says so"
        );
    }

    pub(crate) fn tell_brake(&self, edge: &Edge, event: BrakeEvent) {
        tracing::warn!(
            caller = %self.service(),
            callee = %self.symbols().name(edge.key.callee),
            halved = event == BrakeEvent::Halved,
            "onus: more than half of the suppressed retries would have succeeded"
        );
    }
}

/// Whether the error leaves a retry open, as its caller reads it.
fn permission(read: Option<CalleeClaim>) -> &'static str {
    if read.is_some_and(CalleeClaim::is_unclaimed) { "closed" } else { "open" }
}

/// Whose fault the error is, as far as this service knows.
fn cause(verdict: &ClaimVerdict) -> &'static str {
    match verdict.reason {
        ClaimReason::Own => "self",
        ClaimReason::ContextLost | ClaimReason::Operator => "unknown",
        ClaimReason::Handoff
        | ClaimReason::Silent
        | ClaimReason::Stopped(_)
        | ClaimReason::InFlight => "dependency",
    }
}
