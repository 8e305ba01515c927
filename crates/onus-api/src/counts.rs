//! Counts that only grow, and their differences.

use serde::{Deserialize, Serialize};

/// A struct of counts with field-wise arithmetic and a fixed order for files.
macro_rules! counts {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        #[serde(default)]
        pub struct $name {
            $($(#[$doc])* #[serde(skip_serializing_if = "is_zero")] pub $field: u64,)*
        }

        impl $name {
            /// How many counts there are.
            pub const LEN: usize = [$(stringify!($field)),*].len();

            /// The counts in their order, which never changes: new ones come last.
            #[must_use]
            pub const fn to_array(self) -> [u64; Self::LEN] {
                [$(self.$field),*]
            }

            /// The counts from their order.
            #[must_use]
            pub const fn from_array(array: [u64; Self::LEN]) -> Self {
                let [$($field),*] = array;
                Self { $($field),* }
            }

            /// The sum, field by field.
            #[must_use]
            pub fn plus(self, other: Self) -> Self {
                Self { $($field: self.$field.saturating_add(other.$field)),* }
            }

            /// What was counted since `before`, field by field.
            #[must_use]
            pub fn since(self, before: Self) -> Self {
                Self { $($field: self.$field.saturating_sub(before.$field)),* }
            }

            /// Whether nothing was counted.
            #[must_use]
            pub fn is_zero(&self) -> bool {
                *self == Self::default()
            }
        }
    };
}

counts! {
    /// What is counted on an edge.
    ///
    /// The first six are of finished requests (protocol §9): what became of the callee (`ok`; failed
    /// `alone`, with no other edge failing in the request; failed `jointly`), and of the caller.
    pub struct EdgeCounts {
        /// Requests in which the edge was ok, and so was the caller.
        ok_caller_ok,
        /// … and the caller failed.
        ok_caller_failed,
        /// Requests in which only this edge failed, and the caller was ok.
        alone_caller_ok,
        /// … and the caller failed too.
        alone_caller_failed,
        /// Requests in which this edge failed beside others, and the caller was ok.
        jointly_caller_ok,
        /// … and the caller failed too.
        jointly_caller_failed,
        /// Logical calls that ended ok.
        calls_ok,
        /// Logical calls that failed for good.
        calls_failed,
        /// Logical calls without an outcome.
        calls_abandoned,
        /// Retries made.
        retries,
        /// … that were answered without an error.
        retries_ok,
        /// Retries made after a claim that leaves them open.
        retries_claimed,
        /// Retries made after an answer without a claim, or after silence.
        retries_missing,
        /// Retries made of an unclaimed error, which enforcing would have suppressed.
        retries_unclaimed,
        /// … that were answered without an error.
        retries_unclaimed_ok,
        /// Suppressed retries made all the same, to see what suppression costs.
        probes,
        /// … that were answered without an error.
        probes_ok,
        /// Retries not made because the error was unclaimed.
        suppressed,
        /// … because the request was marked and met silence.
        marked,
        /// … because the efficacy gate was closed.
        gated,
        /// … because the budget was empty.
        budget_denied,
        /// … because the callee asked for none.
        pushed_back,
        /// … because all attempts were made.
        exhausted,
        /// … because no policy allows them.
        not_configured,
        /// … because the body could not be sent again.
        not_replayable,
        /// … because no time was left.
        no_time,
        /// Retries made that enforcing would not have made, for any reason.
        shadow_suppressed,
        /// Calls that could not be tied to a request.
        untied,
        /// Calls that went on where the application repeats.
        repeats,
        /// Replies with a claim that could not be read.
        invalid_claims,
    }
}

counts! {
    /// What is counted in a procedure that a service offers.
    pub struct ProcedureCounts {
        /// Requests answered ok.
        ok,
        /// Requests answered with an error.
        failed,
        /// Requests that nobody waited for any more.
        cancelled,
        /// Requests that blame no call, answered ok.
        clean_ok,
        /// Requests that blame no call, answered with an error.
        clean_failed,
        /// Errors claimed as the service's own.
        claims_own,
        /// Errors claimed so that a caller may retry what nobody retried below.
        claims_handoff,
        /// Errors claimed after silence below.
        claims_silent,
        /// Errors claimed because calls could not be tied to the request.
        claims_context_lost,
        /// Errors unclaimed by an operator's shield.
        claims_operator,
        /// Errors unclaimed because a retry was made or refused below.
        claims_dependency,
    }
}

impl EdgeCounts {
    /// Logical calls.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.calls_ok.saturating_add(self.calls_failed).saturating_add(self.calls_abandoned)
    }

    /// Attempts: what the callee really received.
    #[must_use]
    pub const fn attempts(&self) -> u64 {
        self.calls().saturating_add(self.retries)
    }

    /// Requests in which the edge failed.
    #[must_use]
    pub const fn failures(&self) -> u64 {
        self.isolated()
            .saturating_add(self.jointly_caller_ok)
            .saturating_add(self.jointly_caller_failed)
    }

    /// Requests in which no other edge to blame failed: the evidence for a class.
    #[must_use]
    pub const fn isolated(&self) -> u64 {
        self.alone_caller_ok.saturating_add(self.alone_caller_failed)
    }

    /// Suppressed retries that were made all the same, by a probe or by an observing caller: how
    /// many succeeded, of how many.
    #[must_use]
    pub const fn false_suppressions(&self) -> (u64, u64) {
        (
            self.probes_ok.saturating_add(self.retries_unclaimed_ok),
            self.probes.saturating_add(self.retries_unclaimed),
        )
    }
}

impl ProcedureCounts {
    /// Requests with an outcome.
    #[must_use]
    pub const fn requests(&self) -> u64 {
        self.ok.saturating_add(self.failed)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_is_field_by_field() {
        let array: [u64; EdgeCounts::LEN] = std::array::from_fn(|at| at as u64 + 1);
        let counts = EdgeCounts::from_array(array);
        assert_eq!(counts.to_array(), array);
        let double = counts.plus(counts);
        assert_eq!(double.to_array(), array.map(|count| 2 * count));
        assert_eq!(double.since(counts), counts);
        assert!(!counts.is_zero());
        assert!(counts.since(double).is_zero(), "nothing is counted twice");
        let full = EdgeCounts::from_array([u64::MAX; EdgeCounts::LEN]);
        assert_eq!(full.plus(counts), full);
    }

    #[test]
    fn zeros_are_left_out_and_read_back() {
        let counts = EdgeCounts { calls_ok: 3, probes: 1, ..EdgeCounts::default() };
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"{"calls_ok":3,"probes":1}"#);
        assert_eq!(serde_json::from_str::<EdgeCounts>(&text).unwrap(), counts);
        let newer = r#"{"calls_ok":3,"probes":1,"counted_by_a_newer_agent":7}"#;
        assert_eq!(serde_json::from_str::<EdgeCounts>(newer).unwrap(), counts);
        for wrong in [r#"{"calls_ok":-1}"#, r#"{"calls_ok":1.5}"#, r#"{"calls_ok":"1"}"#] {
            assert!(serde_json::from_str::<EdgeCounts>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sums_for_people() {
        let counts = EdgeCounts {
            calls_ok: 10,
            calls_failed: 3,
            calls_abandoned: 1,
            retries: 4,
            alone_caller_ok: 1,
            alone_caller_failed: 2,
            jointly_caller_ok: 4,
            jointly_caller_failed: 8,
            probes: 5,
            probes_ok: 1,
            retries_unclaimed: 20,
            retries_unclaimed_ok: 2,
            ..EdgeCounts::default()
        };
        assert_eq!((counts.calls(), counts.attempts()), (14, 18));
        assert_eq!((counts.isolated(), counts.failures()), (3, 15));
        assert_eq!(counts.false_suppressions(), (3, 25));
    }
}
