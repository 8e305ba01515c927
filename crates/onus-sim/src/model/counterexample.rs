//! A trace that breaks a property, and the id that finds it again.

use super::bounds::Case;
use super::choice::Tape;
use super::config::Config;
use super::property::Property;
use super::proviso::Provisos;
use super::rules::Rules;
use super::run::Runner;
use super::seen::{Event, Seen};
use super::slice::Slice;
use super::space::Engine;
use super::worst::Known;

/// A trace that breaks a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterexample {
    /// The rules by which it was run.
    pub rules: Rules,
    pub(super) slice: &'static str,
    pub(super) nodes: usize,
    pub(super) index: u64,
    pub(super) tape: Vec<u8>,
    /// The property that it breaks.
    pub property: &'static str,
    pub(super) size: (u32, u32, u32, u64),
}

impl Counterexample {
    pub(super) fn is_smaller_than(&self, other: &Self) -> bool {
        (self.nodes, self.size, self.slice) < (other.nodes, other.size, other.slice)
    }

    /// What [`Replay::of`] takes to run the trace again.
    #[must_use]
    pub fn id(&self) -> String {
        let digit = |&choice: &u8| char::from_digit(choice.into(), 36).unwrap_or('0');
        let tape: String = self.tape.iter().map(digit).collect();
        let id = format!("{}.{}.{}.{tape}", self.slice, self.nodes, self.index);
        if self.rules == Rules::Shipped { id } else { format!("{}:{id}", self.rules.as_str()) }
    }
}

/// One trace, run again for people to read.
#[derive(Clone, Debug)]
pub struct Replay {
    pub(super) rules: Rules,
    pub(super) config: Config,
    pub(super) events: Vec<Event>,
    pub(super) seen: Seen,
}

impl Replay {
    /// The trace of this id; `None` where no trace has it.
    #[must_use]
    pub fn of(id: &str) -> Option<Self> {
        let (rules, id) = match id.split_once(':') {
            None => (Rules::Shipped, id),
            Some((rules, id)) => (Rules::named(rules)?, id),
        };
        let mut parts = id.split('.');
        let slice = Slice::named(parts.next()?)?;
        let nodes: usize = parts.next()?.parse().ok()?;
        let index = parts.next()?.parse().ok()?;
        let choice = |digit: char| digit.to_digit(36).and_then(|digit| u8::try_from(digit).ok());
        let tape = parts.next()?.chars().map(choice).collect::<Option<Vec<_>>>()?;
        if parts.next().is_some() || !slice.sizes(6).contains(&nodes) {
            return None;
        }
        let space = slice.space(nodes);
        let config = space.config(index)?;
        match space.engine {
            Engine::Traces => Some(Self::run(rules, config, &tape)),
            Engine::Dearest => Self::dearest(rules, config, usize::from(*tape.first()?)),
        }
    }

    /// The properties that the trace breaks.
    #[must_use]
    pub fn broken(&self) -> Vec<&'static str> {
        let case = Case::new(&self.config);
        let met = Provisos::of_config(&self.config).and(Provisos::of_trace(&self.seen));
        let is_broken = |property: &Property| {
            met.include(property.needs.without(Provisos::OF_FAILURES))
                && property.is_broken(&case, &self.seen)
        };
        let broken = Property::all().into_iter().filter(is_broken);
        broken.map(|property| property.name).collect()
    }

    /// The dearest trace for one node.
    pub(super) fn dearest(rules: Rules, config: Config, target: usize) -> Option<Self> {
        if target >= config.topology.nodes() {
            return None;
        }
        let (seen, events) = Known::new(&config, rules, target, u64::MAX)?.script(&config, rules);
        Some(Self { rules, config, events, seen })
    }

    pub(super) fn run(rules: Rules, config: Config, tape: &[u8]) -> Self {
        let mut runner = Runner::new(&config, rules, Tape::of(tape), Vec::new());
        runner.trace();
        let (seen, events) = (runner.seen, runner.log);
        Self { rules, config, events, seen }
    }
}
