//! One step of a claim on its way up (protocol §12): what a caller reads, whether it retries, and
//! what it answers.

use crate::graph::{Coverage, Edge};

/// Whether ownership counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ownership {
    /// Every service retries blindly, as before.
    Nowhere,
    /// As far as each service's [`Coverage`] says.
    AsIs,
    /// Every service enforces, and knows its edges.
    Everywhere,
}

/// What a caller reads of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// A retry is open.
    Claimed,
    /// A retry was made below, or deliberately refused.
    Unclaimed,
    /// No claim.
    Missing,
    /// No error any more: a caller below has survived it.
    Survived,
}

impl Answer {
    pub(crate) const ALL: [Self; 4] =
        [Self::Claimed, Self::Unclaimed, Self::Missing, Self::Survived];

    /// What `culprit` answers when it fails by itself.
    pub(crate) fn of_culprit(culprit: Coverage) -> Self {
        match culprit {
            Coverage::NonCooperative => Self::Missing,
            Coverage::Enforcing | Coverage::Observing | Coverage::ContextLost => Self::Claimed,
        }
    }

    /// Whether `caller` retries on `edge` after reading this, and what it then answers.
    pub(crate) fn up(self, caller: Coverage, edge: Edge) -> (bool, Self) {
        if self == Self::Survived {
            return (false, self);
        }
        let blind = match caller {
            Coverage::NonCooperative | Coverage::Observing => true,
            Coverage::Enforcing | Coverage::ContextLost => false,
        };
        let multiplies = edge.attempts >= 2 && (blind || self != Self::Unclaimed);
        let answer = if edge.fail_open {
            Self::Survived
        } else {
            match caller {
                Coverage::NonCooperative => Self::Missing,
                Coverage::ContextLost => Self::Claimed,
                Coverage::Enforcing | Coverage::Observing if edge.held_fail_open => Self::Claimed,
                Coverage::Enforcing | Coverage::Observing
                    if multiplies || self == Self::Unclaimed =>
                {
                    Self::Unclaimed
                }
                Coverage::Enforcing | Coverage::Observing => Self::Claimed,
            }
        };
        (multiplies, answer)
    }
}

impl Ownership {
    /// The coverage that counts for a service.
    pub(crate) fn of(self, coverage: Coverage) -> Coverage {
        match self {
            Self::Nowhere => Coverage::NonCooperative,
            Self::AsIs => coverage,
            Self::Everywhere => Coverage::Enforcing,
        }
    }

    /// The edge that counts: where all is known, nobody takes an edge for another kind than it is.
    pub(crate) fn on(self, edge: Edge) -> Edge {
        match self {
            Self::Nowhere | Self::AsIs => edge,
            Self::Everywhere => Edge { held_fail_open: edge.fail_open, ..edge },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_up() {
        use Answer::{Claimed, Missing, Survived, Unclaimed};
        use Coverage::{ContextLost, Enforcing, NonCooperative, Observing};
        let two = Edge::retrying(2);
        let once = Edge::retrying(1);
        let held = Edge { held_fail_open: true, ..two };
        for (read, caller, edge, multiplies, answers) in [
            (Claimed, Enforcing, two, true, Unclaimed),
            (Claimed, Enforcing, once, false, Claimed),
            (Missing, Enforcing, two, true, Unclaimed),
            (Missing, Enforcing, once, false, Claimed),
            (Unclaimed, Enforcing, two, false, Unclaimed),
            (Unclaimed, Enforcing, once, false, Unclaimed),
            (Unclaimed, Observing, two, true, Unclaimed),
            (Unclaimed, Observing, once, false, Unclaimed),
            (Claimed, Observing, once, false, Claimed),
            (Unclaimed, ContextLost, two, false, Claimed),
            (Claimed, ContextLost, two, true, Claimed),
            (Unclaimed, NonCooperative, two, true, Missing),
            (Claimed, NonCooperative, once, false, Missing),
            (Claimed, Enforcing, held, true, Claimed),
            (Unclaimed, Enforcing, held, false, Claimed),
            (Claimed, Enforcing, two.fail_open(), true, Survived),
            (Unclaimed, Enforcing, two.fail_open(), false, Survived),
            (Survived, NonCooperative, two, false, Survived),
        ] {
            let up = read.up(caller, edge);
            assert_eq!(up, (multiplies, answers), "{read:?} read by {caller:?} on {edge:?}");
        }
    }
}
