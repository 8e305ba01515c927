//! Whether a step vector makes sense; what the format alone cannot refuse.

use std::collections::BTreeMap;

use super::{Because, Step, StepVector};

/// How a call stands, as far as the order of steps goes.
#[derive(Clone, Copy, PartialEq)]
enum Stands {
    /// Started, repeated, or told to retry: the next thing is an attempt.
    Waits,
    /// An attempt is under way.
    Sent,
    /// Answered without an error.
    Ok,
    /// Failed for good, or given up.
    Over,
}

/// What is wrong with the vector, as a fragment that fits after its name.
pub(crate) fn check(vector: &StepVector) -> Result<(), String> {
    if vector.service.share > 100 {
        return Err(format!("enforces for {} percent", vector.service.share));
    }
    let mut calls = Calls { stand: BTreeMap::new(), latest: None, arrived: false };
    for (index, step) in vector.steps.iter().enumerate() {
        let known = edge(step).is_none_or(|edge| vector.edges.contains_key(edge));
        let checked = if known { calls.take(step) } else { Err("names no edge of the vector") };
        checked.map_err(|problem| format!("step {} ({}) {problem}", index + 1, step.word()))?;
    }
    Ok(())
}

fn edge(step: &Step) -> Option<&String> {
    match step {
        Step::Call(call) => Some(&call.edge),
        Step::Load(load) => Some(&load.edge),
        Step::Tokens(look) => Some(&look.edge),
        Step::Gate(look) => Some(&look.edge),
        Step::Brake(look) => Some(&look.edge),
        Step::At(_)
        | Step::Arrive(_)
        | Step::Sent(_)
        | Step::NotSent(_)
        | Step::Failed(_)
        | Step::Ok(_)
        | Step::Abandoned(_)
        | Step::Repeat(_)
        | Step::Answer(_)
        | Step::Shield(_)
        | Step::Switch(_)
        | Step::Lot(_)
        | Step::Judge(_)
        | Step::Criteria(_) => None,
    }
}

/// The calls of the request being served.
struct Calls<'a> {
    stand: BTreeMap<&'a str, Stands>,
    latest: Option<&'a str>,
    arrived: bool,
}

impl<'a> Calls<'a> {
    fn take(&mut self, step: &'a Step) -> Result<(), &'static str> {
        use Stands::{Ok as Answered, Over, Sent, Waits};
        match step {
            Step::Arrive(_) => {
                *self = Self { stand: BTreeMap::new(), latest: None, arrived: true };
                Ok(())
            }
            Step::Answer(_) if !self.arrived => Err("answers no request"),
            Step::Answer(_) => {
                self.arrived = false;
                Ok(())
            }
            Step::Call(_) if !self.arrived => Err("belongs to no request"),
            Step::Call(call) if self.stand.contains_key(call.name()) => {
                Err("starts a call of a name that another has")
            }
            Step::Call(call) => {
                self.latest = Some(call.name());
                self.stand.insert(call.name(), Waits);
                Ok(())
            }
            Step::Sent(step) => self.turn(step.call.as_ref(), &[Waits], Sent),
            Step::NotSent(step) => match step.because {
                Because::Breaker | Because::Limit | Because::Deadline => {
                    self.turn(step.call.as_ref(), &[Waits], Over)
                }
            },
            Step::Failed(step) => {
                let goes_on = matches!(step.then, super::Then::Retry | super::Then::Probe);
                let then = if goes_on { Waits } else { Over };
                self.turn(step.call.as_ref(), &[Sent, Answered], then)
            }
            Step::Ok(step) => self.turn(step.call.as_ref(), &[Sent], Answered),
            Step::Abandoned(step) => self.turn(step.call.as_ref(), &[Waits, Sent], Over),
            Step::Repeat(step) => self.turn(step.call.as_ref(), &[Over], Waits),
            Step::At(_)
            | Step::Shield(_)
            | Step::Switch(_)
            | Step::Load(_)
            | Step::Tokens(_)
            | Step::Gate(_)
            | Step::Brake(_)
            | Step::Lot(_)
            | Step::Judge(_)
            | Step::Criteria(_) => Ok(()),
        }
    }

    /// Moves a call on from one of `from`.
    fn turn(
        &mut self,
        call: Option<&'a String>,
        from: &[Stands],
        then: Stands,
    ) -> Result<(), &'static str> {
        let name = call.map(String::as_str).or(self.latest).ok_or("comes before any call")?;
        let stands = self.stand.get_mut(name).ok_or("names a call that was not started")?;
        if !from.contains(stands) {
            return Err("does not fit how its call stands");
        }
        *stands = then;
        Ok(())
    }
}
