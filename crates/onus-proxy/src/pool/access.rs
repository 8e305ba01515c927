//! One line of the access log for each attempt, where somebody asks for it.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, Method, Request, Response};
use onus::claim::{Claim, ClaimHeaders, ClaimReason, ParsedClaim};
use onus::replay::Attempt;
use tokio::time::Instant;

use super::body::PoolBody;
use super::error::PoolError;
use crate::answer::is_grpc;
use crate::tail::{AccessLog, Line};

/// An attempt that is under way and will be a line, whatever becomes of it.
pub(super) struct Entry {
    log: Arc<AccessLog>,
    callee: Arc<str>,
    method: Method,
    path: String,
    attempt: Attempt,
    begun: Instant,
    /// The instance that is asked, once it is chosen.
    instance: Option<SocketAddr>,
    is_written: bool,
}

impl Entry {
    /// Of an attempt, where somebody asks for lines.
    pub(super) fn begin<B>(
        log: &Arc<AccessLog>,
        callee: &Arc<str>,
        request: &Request<B>,
        attempt: Attempt,
    ) -> Option<Self> {
        log.is_wanted().then(|| Self {
            log: log.clone(),
            callee: callee.clone(),
            method: request.method().clone(),
            path: shortened(request.uri().path()).to_owned(),
            attempt,
            begun: Instant::now(),
            instance: None,
            is_written: false,
        })
    }

    /// Which instance is asked.
    pub(super) fn goes_to(&mut self, instance: SocketAddr) {
        self.instance = Some(instance);
    }

    /// The attempt has its response head, or none. A head of gRPC that does not say how it ends
    /// leaves the line to its trailers.
    pub(super) fn end<B: Send + 'static>(
        mut self,
        sent: Result<Response<PoolBody<B>>, PoolError>,
    ) -> Result<Response<PoolBody<B>>, PoolError> {
        let mut response = match sent {
            Ok(response) => response,
            Err(error) => {
                self.write(0, &HeaderMap::new(), with_causes(&error));
                return Err(error);
            }
        };
        let (status, headers) = (response.status().as_u16(), response.headers());
        if is_grpc(headers) && !headers.contains_key(GRPC_STATUS) {
            let open = OpenEntry { entry: Some(self), status };
            response.body_mut().log(Box::new(open));
        } else {
            self.write(status, headers, String::new());
        }
        Ok(response)
    }

    #[expect(clippy::disallowed_methods, reason = "people and tools are told when it was")]
    fn write(&mut self, status: u16, said: &HeaderMap, error: String) {
        self.is_written = true;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let grpc_status = said.get(GRPC_STATUS).and_then(|code| code.to_str().ok()?.parse().ok());
        let Said { retry, cause, origin, hops } = Said::read(said);
        let line = Line {
            at: ms(now),
            service: self.log.service().clone(),
            callee: self.callee.clone(),
            instance: self.instance.map(|instance| instance.to_string()).unwrap_or_default(),
            attempt: self.attempt.number().get(),
            method: self.method.as_str().to_owned(),
            path: std::mem::take(&mut self.path),
            status,
            grpc_status,
            ms: ms(self.begun.elapsed()),
            retry,
            cause,
            origin,
            hops,
            error,
        };
        self.log.write(line);
    }
}

/// Its client has gone, or its time was over.
impl Drop for Entry {
    fn drop(&mut self) {
        if !self.is_written {
            self.write(0, &HeaderMap::new(), "nobody waited for the answer any more".to_owned());
        }
    }
}

/// An answer of gRPC whose trailers have not come.
pub(super) struct OpenEntry {
    /// Until it is written.
    entry: Option<Entry>,
    status: u16,
}

impl OpenEntry {
    /// The trailers, or the end without any.
    pub(super) fn end(&mut self, trailers: &HeaderMap) {
        self.write(trailers, String::new());
    }

    /// The body broke.
    pub(super) fn breaks(&mut self, error: &hyper::Error) {
        self.write(&HeaderMap::new(), with_causes(error));
    }

    fn write(&mut self, trailers: &HeaderMap, error: String) {
        if let Some(mut entry) = self.entry.take() {
            entry.write(self.status, trailers, error);
        }
    }
}

/// Who reads the answer has gone before its end.
impl Drop for OpenEntry {
    fn drop(&mut self) {
        self.write(&HeaderMap::new(), "the answer was not read to its end".to_owned());
    }
}

fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// What an answer says of its error, in the words for people.
struct Said {
    retry: &'static str,
    cause: &'static str,
    origin: String,
    hops: u8,
}

impl Said {
    const NOTHING: Self = Self { retry: "", cause: "unknown", origin: String::new(), hops: 0 };

    fn read(headers: &HeaderMap) -> Self {
        let ParsedClaim::Valid(text) = ClaimHeaders::default().read(headers) else {
            return Self::NOTHING;
        };
        Self {
            retry: match text.claim {
                Claim::Claimed | Claim::ClaimedSilent => "open",
                Claim::Unclaimed | Claim::UnclaimedShield => "closed",
            },
            cause: match text.reason {
                None | Some(ClaimReason::ContextLost | ClaimReason::Operator) => "unknown",
                Some(ClaimReason::Own) => "self",
                Some(
                    ClaimReason::Handoff
                    | ClaimReason::Silent
                    | ClaimReason::Stopped(_)
                    | ClaimReason::InFlight,
                ) => "dependency",
            },
            origin: text.origin.map(|origin| origin.to_string()).unwrap_or_default(),
            hops: text.hops.unwrap_or(0),
        }
    }
}

/// A stranger's path may be as long as a head, and a reader that is slow has many lines waiting.
fn shortened(path: &str) -> &str {
    &path[..path.floor_char_boundary(PATH_MAX)]
}

/// As much of a path as is told.
const PATH_MAX: usize = 4096;

const GRPC_STATUS: &str = "grpc-status";
