//! What each moment asks to be seen.

use super::{Because, Call, Failed, Step, Then};
use crate::host::{Expected, Fact};

impl Step {
    /// What must be seen at this moment.
    #[must_use]
    pub fn expected(&self) -> Vec<Expected> {
        match self {
            Self::Arrive(step) => of([step.arm.map(Fact::Arm)]),
            Self::Call(Call { arm, .. }) => of([arm.map(Fact::Arm)]),
            Self::Sent(step) => {
                of([step.mark.map(Fact::Mark), step.allows.map(|span| Fact::Allows(span.0))])
            }
            Self::NotSent(step) => match step.because {
                Because::Deadline => of([Some(Fact::Then(Then::Stop(onus_core::Stop::NoTime)))]),
                Because::Breaker | Because::Limit => Vec::new(),
            },
            Self::Failed(step) => of_failure(step),
            Self::Answer(step) => of([
                step.claim.map(Fact::Claim),
                step.reason.map(Fact::Reason),
                step.deciding.clone().map(Fact::Deciding),
                step.vetoes.map(Fact::Vetoes),
                step.clean.map(Fact::Clean),
                step.teaches.clone().map(|lessons| {
                    Fact::Teaches(lessons.into_iter().map(|(edge, l)| (edge, l.0)).collect())
                }),
            ]),
            Self::Load(step) => of([Some(Fact::Loaded(step.calls))]),
            Self::Tokens(step) => of([Some(Fact::Tokens(step.whole))]),
            Self::Gate(step) => {
                of([Some(Fact::GateShare(step.share)), Some(Fact::GatePasses(step.passes))])
            }
            Self::Brake(step) => {
                of([Some(Fact::BrakeEvent(step.event)), Some(Fact::Halvings(step.halvings))])
            }
            Self::Lot(step) => of([Some(Fact::Lot(step.number))]),
            Self::Judge(step) => of([Some(Fact::Failure(step.failure))]),
            Self::Criteria(step) => of([Some(Fact::Met(step.met))]),
            Self::At(_)
            | Self::Ok(_)
            | Self::Abandoned(_)
            | Self::Repeat(_)
            | Self::Shield(_)
            | Self::Switch(_) => Vec::new(),
        }
    }
}

fn of<const N: usize>(facts: [Option<Fact>; N]) -> Vec<Expected> {
    facts.into_iter().flatten().map(Expected::Is).collect()
}

fn of_failure(step: &Failed) -> Vec<Expected> {
    let facts =
        [Some(Fact::Then(step.then)), step.reads.map(Fact::Reads), step.shadow.map(Fact::Shadow)];
    let wait = step.wait.map(|wait| Expected::WaitWithin(wait.min.0, wait.max.0));
    of(facts).into_iter().chain(wait).collect()
}
