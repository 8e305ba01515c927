//! What Envoy's response flags say of an answer that Envoy made itself.
//!
//! The bits are those of Envoy's `CoreResponseFlag`, in their order; they have only ever been added
//! to.

use onus_agent::{CallError, Stop};

/// How a call went that got no reply of its callee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoReply {
    /// The last attempt failed like this.
    Failed(CallError),
    /// A limit of this side let no attempt pass.
    Refused(Stop),
}

/// What the flags say; `None` where they do not say how the attempt failed.
pub(crate) fn no_reply(flags: u64) -> Option<NoReply> {
    TABLE.iter().find(|(bit, _)| flags & (1 << bit) != 0).map(|(_, no_reply)| *no_reply)
}

/// Whether the callee answered, and Envoy's own limit on retries refused another attempt.
pub(crate) fn denied_a_retry(flags: u64) -> bool {
    flags & (1 << OVERFLOW) != 0
}

/// How the handing on of an answer ended whose head was handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The answer came to its end.
    Whole,
    /// It broke off before.
    Broken,
    /// Whoever waited for it has gone before.
    CallerGone,
}

/// What the flags say of the end of an answer.
pub(crate) fn ending(flags: u64) -> Ending {
    if flags & (1 << CONNECTION_TERMINATION | 1 << REMOTE_RESET) != 0 {
        Ending::CallerGone
    } else if no_reply(flags).is_some() {
        Ending::Broken
    } else {
        Ending::Whole
    }
}

const OVERFLOW: u32 = 7;
const CONNECTION_TERMINATION: u32 = 14;
const REMOTE_RESET: u32 = 28;

const REFUSED: NoReply = NoReply::Refused(Stop::Gated);
const CONNECT: NoReply = NoReply::Failed(CallError::Connect);
const RESET: NoReply = NoReply::Failed(CallError::Reset);
const TIMEOUT: NoReply = NoReply::Failed(CallError::Timeout);

/// First match. The comments are Envoy's names.
const TABLE: &[(u32, NoReply)] = &[
    (OVERFLOW, REFUSED),                        // UpstreamOverflow: a circuit breaker
    (11, REFUSED),                              // RateLimited
    (25, REFUSED),                              // OverloadManager
    (27, REFUSED),                              // DropOverLoad
    (0, CONNECT),                               // FailedLocalHealthCheck
    (1, CONNECT),                               // NoHealthyUpstream
    (5, CONNECT),                               // UpstreamConnectionFailure
    (26, CONNECT),                              // DnsResolutionFailed
    (2, TIMEOUT),                               // UpstreamRequestTimeout
    (16, TIMEOUT),                              // StreamIdleTimeout
    (19, TIMEOUT),                              // UpstreamMaxStreamDurationReached
    (22, TIMEOUT),                              // DurationTimeout
    (23, NoReply::Failed(CallError::Protocol)), // UpstreamProtocolError
    (3, RESET),                                 // LocalReset
    (4, RESET),                                 // UpstreamRemoteReset
    (6, RESET),                                 // UpstreamConnectionTermination
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_how_an_attempt_without_a_reply_failed() {
        const RETRY_LIMIT: u64 = 1 << 15;
        for (flags, expected) in [
            (0, None),
            (RETRY_LIMIT, None),
            (1 << 8, None),
            (0x20 | RETRY_LIMIT, Some(CONNECT)),
            (0x2, Some(CONNECT)),
            (0x4 | RETRY_LIMIT, Some(TIMEOUT)),
            (0x40, Some(RESET)),
            (0x80, Some(REFUSED)),
            (1 << 23, Some(NoReply::Failed(CallError::Protocol))),
            (1 << 63, None),
        ] {
            assert_eq!(no_reply(flags), expected, "{flags:#x}");
        }
    }

    #[test]
    fn an_answer_is_whole_unless_a_flag_says_that_it_broke_or_its_caller_went() {
        const DELAY_INJECTED: u64 = 1 << 8;
        for (flags, expected) in [
            (0, Ending::Whole),
            (DELAY_INJECTED, Ending::Whole),
            (0x4000, Ending::CallerGone),
            (1 << 28, Ending::CallerGone),
            (0x4000 | 0x40, Ending::CallerGone),
            (0x40, Ending::Broken),
            (DELAY_INJECTED | 0x10, Ending::Broken),
        ] {
            assert_eq!(ending(flags), expected, "{flags:#x}");
        }
    }
}
