//! Values that are written as text: spans of time, errors, the mode, addresses.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use onus::{CallError, ErrorSet, Mode, Share, Switches};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

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
        let millis = self.0.as_millis();
        let whole =
            |(_, unit): &&(&str, u64)| millis > 0 && millis.is_multiple_of(u128::from(*unit));
        let (unit, size) = UNITS.iter().rev().find(whole).unwrap_or(&UNITS[0]);
        write!(f, "{}{unit}", millis / u128::from(*size))
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

impl Errors {
    fn words(&self, errors: impl Iterator<Item = CallError>) -> Vec<String> {
        errors.filter(|&error| self.0.contains(error)).map(|error| error.to_string()).collect()
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

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |(_, unit): &&(&str, usize)| self.0 > 0 && self.0.is_multiple_of(*unit);
        let (unit, size) = SIZES.iter().rev().find(whole).unwrap_or(&SIZES[0]);
        write!(f, "{}{unit}", self.0 / size)
    }
}

impl fmt::Display for ModeWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Mode::Enforce(share) if share != Share::ALL => {
                write!(f, "enforce {}%", share.basis_points() / 100)
            }
            mode @ (Mode::Off | Mode::Observe | Mode::Enforce(_)) => f.write_str(mode.as_str()),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ModeWord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Errors {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 == ErrorSet::FAILURES {
            return serializer.collect_seq(["failures"]);
        }
        let class = |from| (from..from + 100).map(CallError::Http);
        let whole = |from| class(from).all(|error| self.0.contains(error));
        let statuses = |from: u16| match whole(from) {
            true => vec![format!("http-{}xx", from / 100)],
            false => self.words(class(from)),
        };
        let rest = self.words((1..=16).map(CallError::Grpc).chain(CallError::TRANSPORT));
        serializer.collect_seq([statuses(400), statuses(500), rest].concat())
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h)$", "examples": ["25ms", "8s"]})
    }
}

impl JsonSchema for Size {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+(B|KiB|MiB)$", "examples": ["64KiB"]})
    }
}

impl JsonSchema for ModeWord {
    fn schema_name() -> Cow<'static, str> {
        "Mode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^(off|observe|enforce( ?[0-9]{1,3}%)?)$"})
    }
}

impl JsonSchema for Errors {
    fn schema_name() -> Cow<'static, str> {
        "Errors".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": {
                "type": "string",
                "pattern": "^(failures|http-[45](xx|[0-9]{2})|grpc-[0-9]{1,2}|connect|reset|protocol|timeout)$"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(text: &str, shown: Option<&str>)
    where
        T: for<'de> Deserialize<'de> + Serialize,
    {
        let read = serde_json::from_value::<T>(serde_json::from_str(text).unwrap());
        let again = read.ok().map(|value| serde_json::to_string(&value).unwrap());
        assert_eq!(again.as_deref(), shown, "{text}");
    }

    #[test]
    fn words_are_read_as_they_are_shown() {
        for (text, shown) in [
            ("\"25ms\"", Some("\"25ms\"")),
            ("\"8s\"", Some("\"8s\"")),
            ("\"1000ms\"", Some("\"1s\"")),
            ("\"90m\"", Some("\"90m\"")),
            ("\"2h\"", Some("\"2h\"")),
            ("\"0s\"", Some("\"0ms\"")),
            ("\"5\"", None),
            ("\"-5s\"", None),
            ("\"1.5s\"", None),
            ("\"99999999999999999999s\"", None),
            ("\"s\"", None),
            ("5", None),
        ] {
            check::<Span>(text, shown);
        }
        for (text, shown) in [
            ("\"512B\"", Some("\"512B\"")),
            ("\"65536B\"", Some("\"64KiB\"")),
            ("\"3MiB\"", Some("\"3MiB\"")),
            ("\"3MB\"", None),
        ] {
            check::<Size>(text, shown);
        }
        for (text, shown) in [
            ("\"off\"", Some("\"off\"")),
            ("\"enforce\"", Some("\"enforce\"")),
            ("\"enforce 25%\"", Some("\"enforce 25%\"")),
            ("\"enforce 101%\"", None),
            ("\"on\"", None),
        ] {
            check::<ModeWord>(text, shown);
        }
        for (text, shown) in [
            ("[\"failures\"]", Some("[\"failures\"]")),
            (
                "[\"connect\", \"http-503\", \"grpc-14\"]",
                Some("[\"http-503\",\"grpc-14\",\"connect\"]"),
            ),
            ("[\"http-5xx\", \"http-429\"]", Some("[\"http-429\",\"http-5xx\"]")),
            ("[]", Some("[]")),
            ("[\"http-200\"]", None),
            ("[\"http-600\"]", None),
            ("[\"grpc-0\"]", None),
            ("[\"5xx\"]", None),
        ] {
            check::<Errors>(text, shown);
        }
    }
}
