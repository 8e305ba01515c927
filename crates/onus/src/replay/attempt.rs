//! Which try of a logical call a request body belongs to.

use std::num::NonZeroU32;

/// One try of a logical call, as the services below the outbound layer see it.
///
/// It travels with the [`ReplayBody`](super::ReplayBody), so a connection pool or a balancer can
/// ask which try it is serving without a header of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt {
    number: NonZeroU32,
}

impl Attempt {
    /// The first try.
    pub const FIRST: Self = Self { number: NonZeroU32::MIN };

    /// The try with this number, counted from 1.
    pub const fn new(number: NonZeroU32) -> Self {
        Self { number }
    }

    /// The try after this one. The number saturates.
    pub const fn next(self) -> Self {
        Self { number: self.number.saturating_add(1) }
    }

    /// The number of the try, counted from 1.
    pub const fn number(self) -> NonZeroU32 {
        self.number
    }
}

impl Default for Attempt {
    fn default() -> Self {
        Self::FIRST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_count_from_one_and_saturate() {
        let check = |attempt: Attempt, number: u32| assert_eq!(attempt.number().get(), number);

        check(Attempt::FIRST, 1);
        check(Attempt::FIRST.next(), 2);
        check(Attempt::new(NonZeroU32::MAX), u32::MAX);
        check(Attempt::new(NonZeroU32::MAX).next(), u32::MAX);
    }
}
