//! The retry policies that the demo compares.

use std::time::Duration;

use onus::Mode;

/// A retry policy of all services together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Nobody retries.
    None,
    /// Everybody tries once more.
    Everywhere,
    /// Everybody tries once more for at most 10 % of the requests.
    Budget,
    /// Everybody tries once more where the callee owns the error.
    Ownership,
    /// Both: ownership, and a budget of 10 %.
    OwnershipBudget,
}

impl Policy {
    /// All policies, in the order in which they are shown.
    pub const ALL: [Self; 5] =
        [Self::None, Self::Everywhere, Self::Budget, Self::Ownership, Self::OwnershipBudget];

    /// The name for machines.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Everywhere => "everywhere",
            Self::Budget => "budget",
            Self::Ownership => "ownership",
            Self::OwnershipBudget => "ownership-budget",
        }
    }

    /// The name for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::None => "no retries",
            Self::Everywhere => "one retry at every hop",
            Self::Budget => "10 % budget at every hop",
            Self::Ownership => "ownership",
            Self::OwnershipBudget => "ownership + 10 % budget",
        }
    }

    /// Whether claims decide in this policy, or would if they were not only observed.
    #[must_use]
    pub const fn owns(self) -> bool {
        match self {
            Self::None | Self::Everywhere | Self::Budget => false,
            Self::Ownership | Self::OwnershipBudget => true,
        }
    }

    /// The most attempts of a call.
    pub(crate) const fn attempts(self) -> u32 {
        match self {
            Self::None => 1,
            Self::Everywhere | Self::Budget | Self::Ownership | Self::OwnershipBudget => 2,
        }
    }

    /// Retries per hundred requests of each edge.
    pub(crate) const fn budget_percent(self) -> Option<u32> {
        match self {
            Self::Budget | Self::OwnershipBudget => Some(10),
            Self::None | Self::Everywhere | Self::Ownership => None,
        }
    }

    pub(crate) const fn mode(self, observe: bool) -> Mode {
        match (self.owns(), observe) {
            (false, _) => Mode::Off,
            (true, true) => Mode::Observe,
            (true, false) => Mode::ENFORCE,
        }
    }
}

/// Nothing is overloaded here that a longer wait would spare.
pub(crate) const BACKOFF: (Duration, Duration) =
    (Duration::from_millis(1), Duration::from_millis(5));
