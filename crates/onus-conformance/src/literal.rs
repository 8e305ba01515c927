//! Values of the vectors that are written as text: errors, spans of time, trace ids.

use std::fmt;
use std::time::Duration;

use onus_core::CallError;
use serde::de::{Deserialize, Deserializer, Error};

/// An error, spelt `http-503`, `grpc-14`, `connect`, `reset`, `protocol` or `timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorName(pub CallError);

impl<'de> Deserialize<'de> for ErrorName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let error = match text.split_once('-') {
            Some(("http", status)) => status.parse().ok().map(CallError::Http),
            Some(("grpc", code)) => code.parse().ok().map(CallError::Grpc),
            Some(_) | None => match text.as_str() {
                "connect" => Some(CallError::Connect),
                "reset" => Some(CallError::Reset),
                "protocol" => Some(CallError::Protocol),
                "timeout" => Some(CallError::Timeout),
                _ => None,
            },
        };
        error.map(Self).ok_or_else(|| {
            let known = "http-503, grpc-14, connect, reset, protocol, timeout";
            D::Error::custom(format!("`{text}` is no error; one like {known}"))
        })
    }
}

impl fmt::Display for ErrorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A span of time, spelt as a whole number with its unit: `5ns`, `10us`, `25ms`, `8s`, `15m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let nanos = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, nanos)| nanos);
        let span = nanos.and_then(|nanos| number.parse::<u64>().ok()?.checked_mul(*nanos));
        span.map(|nanos| Self(Duration::from_nanos(nanos)))
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no span of time; one like 25ms")))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000)];

/// A trace id, spelt as its 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub [u8; 16]);

impl<'de> Deserialize<'de> for TraceId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let number = (text.len() == 32).then(|| u128::from_str_radix(&text, 16).ok()).flatten();
        number
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| D::Error::custom(format!("`{text}` is no trace id of 32 hex digits")))
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}
