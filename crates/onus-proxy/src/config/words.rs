//! Values that are written as text: spans of time, errors, the mode, addresses.

use std::fmt;
use std::time::Duration;

use onus::{CallError, ErrorSet, Mode, Switches};
use serde::de::{Deserialize, Deserializer, Error};

/// A span of time, spelt as a whole number with its unit: `25ms`, `8s`, `15m`, `2h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// A number of bytes, spelt with its unit: `512B`, `64KiB`, `16MiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub usize);

/// Which answers are errors, spelt `http-503`, `http-5xx`, `grpc-14`, `connect`, `reset`,
/// `protocol`, `timeout`, or `failures` for all that the protocol calls so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errors(pub ErrorSet);

/// A mode, spelt `off`, `observe`, `enforce`, or `enforce 25%`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModeWord(pub Mode);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let millis = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, millis)| millis);
        let span = millis.and_then(|millis| number.parse::<u64>().ok()?.checked_mul(*millis));
        span.map(|millis| Self(Duration::from_millis(millis))).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is no span of time; one like 25ms, 8s or 15m"))
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

const UNITS: [(&str, u64); 4] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let bytes = SIZES.iter().find(|(name, _)| *name == unit).map(|(_, bytes)| bytes);
        let size = bytes.and_then(|bytes| number.parse::<usize>().ok()?.checked_mul(*bytes));
        size.map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is no size; one like 512B, 64KiB or 16MiB"))
        })
    }
}

const SIZES: [(&str, usize); 3] = [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)];

impl<'de> Deserialize<'de> for Errors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = ErrorSet::EMPTY;
        for word in Vec::<String>::deserialize(deserializer)? {
            let errors = errors(&word).ok_or_else(|| {
                let known =
                    "failures, http-5xx, http-503, grpc-14, connect, reset, protocol, timeout";
                D::Error::custom(format!("{word:?} is no error; one of {known}"))
            })?;
            errors.into_iter().for_each(|error| set.insert(error));
        }
        Ok(Self(set))
    }
}

fn errors(word: &str) -> Option<Vec<CallError>> {
    let one = match word {
        "connect" => CallError::Connect,
        "reset" => CallError::Reset,
        "protocol" => CallError::Protocol,
        "timeout" => CallError::Timeout,
        "failures" => {
            let replies = (400..=599).map(CallError::Http).chain((1..=16).map(CallError::Grpc));
            let all = replies.chain(CallError::TRANSPORT);
            return Some(all.filter(|&error| ErrorSet::FAILURES.contains(error)).collect());
        }
        "http-5xx" => return Some((500..=599).map(CallError::Http).collect()),
        "http-4xx" => return Some((400..=499).map(CallError::Http).collect()),
        _ => match word.split_once('-')? {
            ("http", status) => {
                CallError::Http(status.parse().ok().filter(|status| (400..=599).contains(status))?)
            }
            ("grpc", code) => {
                CallError::Grpc(code.parse().ok().filter(|code| (1..=16).contains(code))?)
            }
            _ => return None,
        },
    };
    Some(vec![one])
}

impl<'de> Deserialize<'de> for ModeWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read =
            Switches::parse(&format!("mode: {text}")).ok().and_then(|switches| switches.mode);
        read.map(Self).ok_or_else(|| {
            let known = "off, observe, enforce, or enforce with a share such as enforce 25%";
            D::Error::custom(format!("{text:?} is no mode; one of {known}"))
        })
    }
}

impl Default for ModeWord {
    fn default() -> Self {
        Self(Mode::Observe)
    }
}
