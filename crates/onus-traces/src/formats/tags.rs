//! The tags and attributes that say something about a span, by any of their names.

use onus_core::CallError;

use crate::span::{Draft, Kind, grpc_status, http_status};

/// A tag worth reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    /// OpenTracing's `error`: a truth value, of which only true is an error.
    Error,
    /// OpenTelemetry's status, as exporters to Jaeger write it.
    OtelStatus,
    Kind,
    HttpStatus,
    GrpcStatus,
    /// The name of who is called, with its rank among such names.
    Peer(u8),
}

impl Tag {
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"error" => Self::Error,
            b"otel.status_code" => Self::OtelStatus,
            b"span.kind" => Self::Kind,
            b"http.status_code" | b"http.response.status_code" => Self::HttpStatus,
            b"rpc.grpc.status_code" | b"grpc.status_code" | b"rpc.response.status_code" => {
                Self::GrpcStatus
            }
            b"peer.service" => Self::Peer(PEER_SERVICE),
            b"service.peer.name" => Self::Peer(4),
            b"db.system.name" | b"db.system" => Self::Peer(3),
            b"messaging.system" => Self::Peer(2),
            _ => return None,
        })
    }

    /// Says to `draft` that Zipkin's tag `error` is there, whose value explains it: a message, or the
    /// status of an HTTP answer.
    pub(crate) fn say_error(value: &[u8], draft: &mut Draft) {
        draft.error = true;
        draft.status = draft.status.or_else(|| status(value));
    }

    /// Says to `draft` what the tag says, its value being a text or the text of a number; `name`
    /// makes a number of the name of a service.
    pub(crate) fn say(self, value: &[u8], draft: &mut Draft, name: impl FnOnce(&[u8]) -> u32) {
        match self {
            Self::Error => draft.error |= matches!(value, b"true" | b"True" | b"1"),
            Self::OtelStatus => draft.error |= value.eq_ignore_ascii_case(b"error"),
            Self::Kind => draft.kind = kind(value).unwrap_or(draft.kind),
            Self::HttpStatus => draft.status = status(value).or(draft.status),
            Self::GrpcStatus => draft.status = grpc(value).or(draft.status),
            Self::Peer(rank) => {
                let number = name(value);
                draft.peer(number, rank);
            }
        }
    }
}

/// The rank of a name that is given to the callee itself, and not to what kind of thing it is.
pub(crate) const PEER_SERVICE: u8 = 5;

/// The kind that a format writes: `client`, `CLIENT`, `SPAN_KIND_CLIENT` or 3.
pub(crate) fn kind(text: &[u8]) -> Option<Kind> {
    let name = text.strip_prefix(b"SPAN_KIND_").unwrap_or(text);
    for (names, kind) in [
        ([&b"client"[..], b"producer", b"3", b"4"], Kind::Caller),
        ([b"server", b"consumer", b"2", b"5"], Kind::Callee),
        ([b"internal", b"unspecified", b"1", b"0"], Kind::Internal),
    ] {
        if names.iter().any(|known| name.eq_ignore_ascii_case(known)) {
            return Some(kind);
        }
    }
    None
}

/// The HTTP status that a text is, if it is that of an error.
pub(crate) fn status(value: &[u8]) -> Option<CallError> {
    http_status(number(value)?)
}

fn grpc(value: &[u8]) -> Option<CallError> {
    grpc_status(number(value).or_else(|| {
        let named = |name: &&[u8]| name.eq_ignore_ascii_case(value);
        GRPC_CODES.iter().position(named).map(|code| code as u64)
    })?)
}

fn number(value: &[u8]) -> Option<u64> {
    std::str::from_utf8(value).ok()?.parse().ok()
}

const GRPC_CODES: [&[u8]; 17] = [
    b"OK",
    b"CANCELLED",
    b"UNKNOWN",
    b"INVALID_ARGUMENT",
    b"DEADLINE_EXCEEDED",
    b"NOT_FOUND",
    b"ALREADY_EXISTS",
    b"PERMISSION_DENIED",
    b"RESOURCE_EXHAUSTED",
    b"FAILED_PRECONDITION",
    b"ABORTED",
    b"OUT_OF_RANGE",
    b"UNIMPLEMENTED",
    b"INTERNAL",
    b"UNAVAILABLE",
    b"DATA_LOSS",
    b"UNAUTHENTICATED",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(tags: &[(&str, &str)]) -> Draft {
        let mut draft = Draft::new(0);
        for (key, value) in tags {
            let tag = Tag::of(key.as_bytes()).expect("it says something");
            tag.say(value.as_bytes(), &mut draft, |_| 7);
        }
        draft
    }

    #[test]
    fn errors_and_statuses_in_any_order() {
        for (tags, error, status) in [
            (&[("error", "true")][..], true, None),
            (&[("error", "false")], false, None),
            (&[("error", "ClientSideError")], false, None),
            (&[("http.status_code", "503"), ("error", "true")], true, Some(CallError::Http(503))),
            (&[("http.response.status_code", "404")], false, Some(CallError::Http(404))),
            (&[("otel.status_code", "ERROR")], true, None),
            (&[("otel.status_code", "OK")], false, None),
            (&[("rpc.grpc.status_code", "14")], false, Some(CallError::Grpc(14))),
            (&[("rpc.response.status_code", "NOT_FOUND")], false, Some(CallError::Grpc(5))),
            (&[("grpc.status_code", "0"), ("http.status_code", "200")], false, None),
        ] {
            let draft = said(tags);
            assert_eq!((draft.error, draft.status), (error, status), "{tags:?}");
        }
    }

    #[test]
    fn to_zipkin_an_error_is_a_tag_that_is_there() {
        let http = |status| Some(CallError::Http(status));
        for (value, before, expected) in [
            ("", None, None),
            ("false", None, None),
            ("404", None, http(404)),
            ("404", http(503), http(503)),
            ("timeout", http(404), http(404)),
        ] {
            let mut draft = Draft::new(0);
            draft.status = before;
            Tag::say_error(value.as_bytes(), &mut draft);
            assert_eq!((draft.error, draft.status), (true, expected), "{value}");
        }
    }

    #[test]
    fn kinds_of_every_spelling() {
        for (text, expected) in [
            ("client", Some(Kind::Caller)),
            ("PRODUCER", Some(Kind::Caller)),
            ("SPAN_KIND_SERVER", Some(Kind::Callee)),
            ("5", Some(Kind::Callee)),
            ("SPAN_KIND_INTERNAL", Some(Kind::Internal)),
            ("", None),
            ("9", None),
        ] {
            assert_eq!(kind(text.as_bytes()), expected, "{text}");
        }
    }
}
