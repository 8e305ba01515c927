//! What Istio does without configuration. Source: Istio's documentation of `HTTPRetry`, and the
//! default retry policy of pilot (`pilot/pkg/networking/core/route/retry`): two retries on
//! connect-failure, refused-stream, unavailable and cancelled. Status 503 left the list in 1.24,
//! so that of HTTP errors only a connection that fails is retried. No budget.

use onus_core::{CallError, Timestamp};

use super::{FailedAttempt, Rival};

/// gRPC behind Istio: an error of the callee is UNAVAILABLE, and retried.
pub(crate) struct IstioGrpc;

/// HTTP behind Istio: only a connection that cannot be made is retried.
pub(crate) struct IstioHttp;

const ATTEMPTS: u32 = 3;

impl Rival for IstioGrpc {
    fn may_retry(&mut self, failed: &FailedAttempt, _now: Timestamp) -> bool {
        let covered = match failed.error {
            CallError::Http(_) | CallError::Grpc(_) | CallError::Connect => true,
            CallError::Reset | CallError::Protocol | CallError::Timeout => false,
        };
        covered && failed.made < ATTEMPTS
    }
}

impl Rival for IstioHttp {
    fn may_retry(&mut self, failed: &FailedAttempt, _now: Timestamp) -> bool {
        failed.error == CallError::Connect && failed.made < ATTEMPTS
    }
}
