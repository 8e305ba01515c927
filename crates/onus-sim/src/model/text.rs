//! A trace as people read it: what is set up, what happens, and what each node got.

use std::fmt::Write;

use onus_core::{CalleeClaim, Claim, ClaimReason, EdgeClass};

use super::config::{Config, Retries, Role, Setting};
use super::counterexample::Replay;
use super::seen::{Event, Fate};
use super::topology::Fan;

impl Replay {
    /// The trace as text.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in self.set_up().into_iter().chain(self.course()).chain([self.totals()]) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }

    fn set_up(&self) -> Vec<String> {
        let config = &self.config;
        let mut lines = Vec::new();
        if self.rules != super::rules::Rules::Shipped {
            lines.push(format!("rules: {}, {}", self.rules.as_str(), self.rules.words()));
        }
        for (ends, setting) in config.topology.edges().iter().zip(&config.edges) {
            let (from, to) = (self.name(ends.from), self.name(ends.to));
            lines.push(format!("{from} -> {to}: {}", describe(*setting)));
        }
        for node in 0..config.topology.nodes() {
            let name = self.name(node);
            if let Some(role) = of_role(config.roles[node]) {
                lines.push(format!("{name} {role}"));
            }
            match config.topology.fan(node) {
                Fan::Parallel => lines.push(format!("{name} calls all at once")),
                Fan::Fallback => lines.push(format!("{name} calls the next where one has failed")),
                Fan::Sequence => {}
            }
        }
        lines.extend(switches(config));
        lines.push(String::new());
        lines
    }

    fn course(&self) -> Vec<String> {
        self.events.iter().map(|event| self.line(event)).collect()
    }

    fn line(&self, event: &Event) -> String {
        let ends = |edge: usize| {
            let ends = self.config.topology.edges()[edge];
            (self.name(ends.from), self.name(ends.to))
        };
        match *event {
            Event::Sent { edge, number, marked } => {
                let (from, to) = ends(edge);
                let marked = if marked { ", marked" } else { "" };
                format!("{from} -> {to}: attempt {number}{marked}")
            }
            Event::Layer { edge } => {
                let (from, to) = ends(edge);
                format!("{from} -> {to}: again, by the layer below")
            }
            Event::Answers { node, fate, claim } => {
                let says = claim.map_or_else(String::new, |claim| format!(": {}", spell(claim)));
                let name = self.name(node);
                match fate {
                    Fate::Ok => format!("{name} answers ok"),
                    Fate::Own => format!("{name} fails by itself{says}"),
                    Fate::Passed => format!("{name} fails{says}"),
                    Fate::Lost => format!("{name}'s answer is lost"),
                }
            }
            Event::Decided { edge, reads, stop } => {
                let (from, to) = ends(edge);
                let reads = reading(reads);
                match stop {
                    None => format!("{from} reads {reads} from {to} and retries"),
                    Some(stop) => format!("{from} reads {reads} from {to}: {}", stop.as_str()),
                }
            }
            Event::Dropped { edge, waits } => {
                let (from, to) = ends(edge);
                let when = if waits { " before the retry" } else { "" };
                format!("{from} gives the call of {to} up{when}")
            }
        }
    }

    fn totals(&self) -> String {
        let counts = self.seen.requests.iter().enumerate();
        let with = counts.map(|(node, count)| match self.seen.baseline.get(node) {
            Some(without) => format!("{} {count} ({without})", self.name(node)),
            None => format!("{} {count}", self.name(node)),
        });
        let without = if self.seen.baseline.is_empty() { "" } else { " (without ownership)" };
        format!("\nrequests{without}: {}", with.collect::<Vec<_>>().join(", "))
    }

    pub(super) fn name(&self, node: usize) -> &str {
        self.config.topology.name(node)
    }
}

/// Policy, class, and what is believed of it.
fn describe(setting: Setting) -> String {
    let retries = match setting.retries {
        Retries::Attempts(attempts) => format!("{attempts} attempts"),
        Retries::NotConfigured => "no retries".to_owned(),
        Retries::BudgetDenied => "no budget for retries".to_owned(),
        Retries::Excluded => "policy excludes the error".to_owned(),
        Retries::NotReplayable => "body cannot be sent again".to_owned(),
        Retries::NoTime => "no time for retries".to_owned(),
    };
    let class = if setting.open { EdgeClass::FailOpen } else { EdgeClass::FailClose };
    let held = if setting.held == class {
        String::new()
    } else {
        format!(", held {}", setting.held.as_str())
    };
    format!("{retries}, {}{held}", class.as_str())
}

const fn of_role(role: Role) -> Option<&'static str> {
    match role {
        Role::Correlated => None,
        Role::ContextLost => Some("loses the context of its requests"),
        Role::NonCooperative => Some("has no Onus and retries blindly"),
        Role::Observing => Some("observes"),
        Role::ObeyingLayer => Some("has its retries made by a layer below that obeys vetoes"),
        Role::BlindLayer => Some("has its retries made by a layer below that obeys nothing"),
        Role::ObeyingLibrary => Some("has no Onus, and retries that obey vetoes"),
    }
}

fn switches(config: &Config) -> Vec<String> {
    let switches = [
        ("silent-claims is on", config.switches.silent_claims),
        ("probes are on", config.switches.probes),
    ];
    switches.into_iter().filter(|(_, on)| *on).map(|(text, _)| text.to_owned()).collect()
}

/// A claim with its reason.
pub(super) fn spell((claim, reason): (Claim, ClaimReason)) -> String {
    format!("{} ({})", reading(CalleeClaim::Reply(claim)), reason.as_str())
}

/// What a caller reads.
pub(super) const fn reading(claim: CalleeClaim) -> &'static str {
    match claim {
        CalleeClaim::Reply(Claim::ClaimedSilent) => "claimed;kind=silent",
        CalleeClaim::Reply(Claim::UnclaimedShield) => "unclaimed;kind=shield",
        CalleeClaim::Missing => "no claim",
        CalleeClaim::Silent => "no reply",
        CalleeClaim::Reply(Claim::Claimed) => "claimed",
        CalleeClaim::Reply(Claim::Unclaimed) => "unclaimed",
    }
}
