//! On what a policy retries.

use std::fmt;

/// What a policy retries on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// No connection to the callee could be made.
    ConnectFailure,
    /// The callee refused the stream before it did anything.
    RefusedStream,
    /// The connection broke before the request was sent.
    ResetBeforeRequest,
    /// No answer: the connection broke, or the time was over.
    NoAnswer,
    /// Any status from 500 to 599, and no answer.
    ServerError,
    /// 502, 503 and 504.
    GatewayError,
    /// A status of HTTP.
    Status(u16),
    /// Statuses of HTTP from one to another.
    Statuses(u16, u16),
    /// A code of gRPC.
    Grpc(u8),
    /// A header of the answer says so.
    Header,
    /// The answer was made by a rate limiter.
    RateLimited,
    /// A word that is not known.
    Unknown(String),
}

/// What kind of calls go over an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Traffic {
    /// HTTP without gRPC.
    Http,
    /// gRPC.
    Grpc,
    /// Not known, or both.
    Unknown,
}

impl Condition {
    /// A word of Envoy's `retry_on`, which Istio, Contour and Envoy Gateway use too.
    #[must_use]
    pub fn of_envoy(word: &str) -> Self {
        match word {
            "5xx" => Self::ServerError,
            "gateway-error" => Self::GatewayError,
            "reset" | "http3-post-connect-failure" => Self::NoAnswer,
            "reset-before-request" => Self::ResetBeforeRequest,
            "connect-failure" => Self::ConnectFailure,
            "refused-stream" => Self::RefusedStream,
            "retriable-4xx" => Self::Status(409),
            "envoy-ratelimited" => Self::RateLimited,
            "retriable-headers" => Self::Header,
            _ => match word.parse() {
                Ok(status @ 100..=599) => Self::Status(status),
                _ => Self::of_grpc(word),
            },
        }
    }

    /// The name of a code of gRPC, in either spelling.
    #[must_use]
    pub fn of_grpc(name: &str) -> Self {
        let plain = name.replace('_', "-");
        let code = GRPC.iter().position(|known| known.eq_ignore_ascii_case(&plain));
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(code) => Self::Grpc(code),
            None => Self::Unknown(name.to_owned()),
        }
    }

    /// Whether it covers an answer by which a callee says that it failed.
    #[must_use]
    pub fn covers_answers(&self, traffic: Traffic) -> bool {
        let http = match self {
            Self::ServerError | Self::GatewayError | Self::Header | Self::RateLimited => true,
            Self::Status(status) => is_failure(*status),
            Self::Statuses(from, to) => (*from..=*to).any(is_failure),
            Self::Unknown(_) => true,
            Self::ConnectFailure
            | Self::RefusedStream
            | Self::ResetBeforeRequest
            | Self::NoAnswer
            | Self::Grpc(_) => false,
        };
        let grpc = match self {
            Self::Grpc(_) | Self::Header | Self::Unknown(_) => true,
            Self::ConnectFailure
            | Self::RefusedStream
            | Self::ResetBeforeRequest
            | Self::NoAnswer
            | Self::ServerError
            | Self::GatewayError
            | Self::Status(_)
            | Self::Statuses(..)
            | Self::RateLimited => false,
        };
        match traffic {
            Traffic::Http => http,
            Traffic::Grpc => grpc,
            Traffic::Unknown => http || grpc,
        }
    }

    /// Whether the callee may have done what it was asked for.
    #[must_use]
    pub const fn may_follow_work(&self) -> bool {
        match self {
            Self::ConnectFailure
            | Self::RefusedStream
            | Self::ResetBeforeRequest
            | Self::RateLimited => false,
            Self::NoAnswer
            | Self::ServerError
            | Self::GatewayError
            | Self::Status(_)
            | Self::Statuses(..)
            | Self::Grpc(_)
            | Self::Header
            | Self::Unknown(_) => true,
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::ConnectFailure => "connect-failure",
            Self::RefusedStream => "refused-stream",
            Self::ResetBeforeRequest => "reset-before-request",
            Self::NoAnswer => "no-answer",
            Self::ServerError => "5xx",
            Self::GatewayError => "gateway-error",
            Self::Status(status) => return write!(formatter, "{status}"),
            Self::Statuses(from, to) => return write!(formatter, "{from}-{to}"),
            Self::Grpc(code) => GRPC.get(usize::from(*code)).copied().unwrap_or("unknown"),
            Self::Header => "retriable-headers",
            Self::RateLimited => "rate-limited",
            Self::Unknown(word) => word,
        };
        formatter.write_str(word)
    }
}

/// What counts as the callee's failure (protocol term-4).
fn is_failure(status: u16) -> bool {
    status == 429 || (500..=599).contains(&status)
}

/// The codes of gRPC, by number.
const GRPC: [&str; 17] = [
    "ok",
    "cancelled",
    "unknown",
    "invalid-argument",
    "deadline-exceeded",
    "not-found",
    "already-exists",
    "permission-denied",
    "resource-exhausted",
    "failed-precondition",
    "aborted",
    "out-of-range",
    "unimplemented",
    "internal",
    "unavailable",
    "data-loss",
    "unauthenticated",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_and_what_it_covers() {
        for (word, http, grpc, work) in [
            ("5xx", true, false, true),
            ("gateway-error", true, false, true),
            ("reset", false, false, true),
            ("reset-before-request", false, false, false),
            ("connect-failure", false, false, false),
            ("refused-stream", false, false, false),
            ("retriable-4xx", false, false, true),
            ("503", true, false, true),
            ("429", true, false, true),
            ("404", false, false, true),
            ("unavailable", false, true, true),
            ("CANCELLED", false, true, true),
            ("deadline_exceeded", false, true, true),
            ("whatever", true, true, true),
        ] {
            let condition = Condition::of_envoy(word);
            let found = (
                condition.covers_answers(Traffic::Http),
                condition.covers_answers(Traffic::Grpc),
                condition.may_follow_work(),
            );
            assert_eq!(found, (http, grpc, work), "{word}");
        }
    }
}
