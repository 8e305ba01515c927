//! Whether a call of a request is one that the application has made before (protocol §1).

use crate::mode::Arm;

/// What tells a call of a request from its other calls. `C` names a callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CallIdentity<C> {
    /// Who is called.
    pub callee: C,
    /// A hash of method, path and query.
    pub head: u64,
    /// A digest of the body, where it is known.
    pub body: Option<u64>,
    /// How many attempts the application says it has made before this one: gRPC libraries number
    /// their retries. 0 where it says nothing.
    pub previous: u32,
}

impl<C: PartialEq> CallIdentity<C> {
    /// The place of the call that this one repeats, among those of its request that have failed or
    /// were abandoned, in the order in which they ended.
    ///
    /// The body tells where it is known of both. Else the number does: a retry follows the attempt
    /// with the number below its own, or the nearest where attempts were lost on the way here. Calls
    /// with one and the same number carry one that was copied from elsewhere. A call under way is not
    /// among those given, so that a hedged one repeats none. In a request for which ownership is off
    /// no number is read.
    #[must_use]
    pub fn repeated<'a>(
        &self,
        arm: Arm,
        ended: impl Iterator<Item = &'a Self> + Clone,
    ) -> Option<usize>
    where
        C: 'a,
    {
        let own = if arm.is_off() { 0 } else { self.previous };
        let alike = ended
            .enumerate()
            .filter(|(_, earlier)| earlier.callee == self.callee && earlier.head == self.head);
        let by_body =
            alike.clone().find(|(_, earlier)| earlier.body.is_some() && earlier.body == self.body);
        let by_number = || {
            alike
                .filter(|(_, earlier)| earlier.body.is_none() || self.body.is_none())
                .filter(|(_, earlier)| earlier.previous < own)
                // The last of equals.
                .max_by_key(|(_, earlier)| earlier.previous)
        };
        by_body.or_else(by_number).map(|(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call of `head` with a body, if it is known, and with the number that it says.
    type Call = (u64, Option<u64>, u32);

    #[track_caller]
    fn check(ended: &[Call], call: Call, repeated: Option<usize>) {
        let identity =
            |&(head, body, previous): &Call| CallIdentity { callee: "b", head, body, previous };
        let ended: std::vec::Vec<_> = ended.iter().map(identity).collect();
        let call = identity(&call);
        for arm in [Arm::Observe, Arm::Control, Arm::Enforce] {
            assert_eq!(call.repeated(arm, ended.iter()), repeated, "{arm:?}");
        }
        let elsewhere = CallIdentity { callee: "c", ..call };
        assert_eq!(elsewhere.repeated(Arm::Enforce, ended.iter()), None, "another callee");
        let unnumbered = CallIdentity { previous: 0, ..call };
        let by_body = unnumbered.repeated(Arm::Enforce, ended.iter());
        assert_eq!(call.repeated(Arm::Off, ended.iter()), by_body, "a number is not read");
    }

    #[test]
    fn a_body_that_is_known_tells_a_repeat() {
        // [attempt-5] [attempt-10]
        let (x, y) = (Some(7), Some(8));
        check(&[], (1, x, 0), None);
        check(&[(1, x, 0)], (1, x, 0), Some(0));
        check(&[(1, x, 0)], (2, x, 0), None);
        check(&[(1, x, 0)], (1, y, 0), None);
        check(&[(1, x, 0)], (1, None, 0), None);
        check(&[(1, None, 0)], (1, x, 0), None);
        check(&[(1, None, 0)], (1, None, 0), None);
        check(&[(1, y, 0), (2, x, 0), (1, x, 0), (1, x, 0)], (1, x, 0), Some(2));
    }

    #[test]
    fn a_number_tells_a_repeat_where_a_body_is_not_known() {
        // [attempt-13] [mode-2]
        const NONE: Option<u64> = None;
        let (x, y) = (Some(7), Some(8));
        check(&[], (1, NONE, 1), None);
        check(&[(1, NONE, 0)], (1, NONE, 1), Some(0));
        check(&[(2, NONE, 0)], (1, NONE, 1), None);
        check(&[(1, NONE, 1)], (1, NONE, 2), Some(0));
        // Attempts in between have not come this far.
        check(&[(1, NONE, 0)], (1, NONE, 3), Some(0));
        // Copied from the request that is served, onto calls that have nothing to do with each other.
        check(&[(1, NONE, 1)], (1, NONE, 1), None);
        check(&[(1, NONE, 2)], (1, NONE, 1), None);
        // Of several: the nearest number, and the last that ended.
        check(&[(1, NONE, 0), (1, NONE, 0), (2, NONE, 0)], (1, NONE, 1), Some(1));
        check(&[(1, NONE, 1), (1, NONE, 0)], (1, NONE, 2), Some(0));
        check(&[(1, NONE, 1), (1, NONE, 0)], (1, NONE, 1), Some(1));
        // One body known does not speak against it, two that differ do, and the same one goes first.
        check(&[(1, x, 0)], (1, NONE, 1), Some(0));
        check(&[(1, NONE, 0)], (1, x, 1), Some(0));
        check(&[(1, x, 0)], (1, y, 1), None);
        check(&[(1, x, 0), (1, NONE, 0)], (1, x, 1), Some(0));
    }
}
