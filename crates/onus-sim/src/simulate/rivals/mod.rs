//! Other people's retry algorithms, to compare with.
//!
//! Each is as small as its public description allows; the module names its source. What they have
//! in common: they decide on a failed attempt, one per edge and instance of the caller, and never
//! read a claim.

mod bytedance;
mod grpc;
mod istio;
mod istio_budget;
mod linkerd;
mod window;

use onus_core::{CallError, Timestamp};

pub(crate) use bytedance::Bytedance;
pub(crate) use grpc::GrpcThrottling;
pub(crate) use istio::{IstioGrpc, IstioHttp};
pub(crate) use istio_budget::IstioBudget;
pub(crate) use linkerd::Linkerd;

/// A retry algorithm of somebody else: the memory of one edge in one instance of the caller.
pub(crate) trait Rival: Send {
    /// A logical call starts.
    fn call_started(&mut self, _now: Timestamp) {}

    /// An attempt was answered without an error.
    fn attempt_succeeded(&mut self, _now: Timestamp) {}

    /// An attempt failed: is another one made?
    fn may_retry(&mut self, failed: &FailedAttempt, now: Timestamp) -> bool;
}

/// A failed attempt, as the algorithms see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FailedAttempt {
    /// Attempts made so far.
    pub(crate) made: u32,
    pub(crate) error: CallError,
    /// Whether the request being served descends from a retry, as far as requests say so.
    pub(crate) serves_retry: bool,
    /// Whether the callee asked not to be called again.
    pub(crate) pushback: bool,
}

/// The algorithms, with what can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RivalKind {
    GrpcThrottling { attempts: u32 },
    IstioGrpc,
    IstioHttp,
    IstioBudget { attempts: u32, percent: u32 },
    Linkerd { percent: u32, floor: u32 },
    Bytedance { attempts: u32 },
}

impl RivalKind {
    /// A memory that has seen no call.
    pub(crate) fn start(self) -> Box<dyn Rival> {
        match self {
            Self::GrpcThrottling { attempts } => Box::new(GrpcThrottling::new(attempts)),
            Self::IstioGrpc => Box::new(IstioGrpc),
            Self::IstioHttp => Box::new(IstioHttp),
            Self::IstioBudget { attempts, percent } => {
                Box::new(IstioBudget::new(attempts, percent))
            }
            Self::Linkerd { percent, floor } => Box::new(Linkerd::new(percent, floor)),
            Self::Bytedance { attempts } => Box::new(Bytedance::new(attempts)),
        }
    }

    /// Whether a retry says so of itself to all services below.
    pub(crate) const fn flags_retries(self) -> bool {
        match self {
            Self::Bytedance { .. } => true,
            Self::GrpcThrottling { .. }
            | Self::IstioGrpc
            | Self::IstioHttp
            | Self::IstioBudget { .. }
            | Self::Linkerd { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    fn failed(made: u32, error: CallError) -> FailedAttempt {
        FailedAttempt { made, error, serves_retry: false, pushback: false }
    }

    const UNAVAILABLE: CallError = CallError::Http(503);

    /// Calls of which every attempt fails, `per_second` of them for some seconds; the retries.
    fn retries_in_an_outage(rival: &mut dyn Rival, seconds: u64, per_second: u64) -> u64 {
        let mut retries = 0;
        for now in (0..seconds).map(at) {
            for _ in 0..per_second {
                rival.call_started(now);
                let mut made = 1;
                while rival.may_retry(&failed(made, UNAVAILABLE), now) {
                    made += 1;
                    retries += 1;
                }
            }
        }
        retries
    }

    #[test]
    fn how_far_each_goes_in_an_outage() {
        for (kind, least, most) in [
            // Ten tokens, half of which let retries pass: four failures and no more.
            (RivalKind::GrpcThrottling { attempts: 4 }, 3, 4),
            (RivalKind::IstioGrpc, 20_000, 20_000),
            (RivalKind::IstioHttp, 0, 0),
            (RivalKind::IstioBudget { attempts: 3, percent: 20 }, 1_900, 2_100),
            (RivalKind::Linkerd { percent: 20, floor: 10 }, 2_900, 3_200),
            (RivalKind::Bytedance { attempts: 2 }, 5, 20),
        ] {
            let retries = retries_in_an_outage(kind.start().as_mut(), 100, 100);
            assert!((least..=most).contains(&retries), "{kind:?}: {retries}");
        }
    }

    #[test]
    fn refusals_that_each_knows() {
        let retry = RivalKind::Bytedance { attempts: 2 }
            .start()
            .may_retry(&FailedAttempt { serves_retry: true, ..failed(1, UNAVAILABLE) }, at(0));
        assert!(!retry, "a request that descends from a retry is not retried");
        let retry = RivalKind::GrpcThrottling { attempts: 4 }
            .start()
            .may_retry(&FailedAttempt { pushback: true, ..failed(1, UNAVAILABLE) }, at(0));
        assert!(!retry, "gRPC obeys a pushback");
        assert!(RivalKind::IstioHttp.start().may_retry(&failed(1, CallError::Connect), at(0)));
        assert!(!RivalKind::IstioGrpc.start().may_retry(&failed(1, CallError::Timeout), at(0)));
    }
}
