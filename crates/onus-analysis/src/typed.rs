//! Values as they are typed: with their place, and spans of time.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};
use serde_saphyr::{Location, Spanned};

/// A value and where it stands, so that what is found wrong later is told with its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Location,
}

impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, place: Location::UNKNOWN }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for At<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, defined: _ } = Spanned::deserialize(deserializer)?;
        Ok(Self { value, place: referenced })
    }
}

impl<T: Serialize> Serialize for At<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for At<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// A span of time, spelt as a whole number with its unit: `25ms`, `10s`, `15m`, `2h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(pub(crate) Duration);

const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A time such as `25ms`, `10s`, `15m`, `2h` or `7d`.
#[must_use]
pub fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|character: char| !character.is_ascii_digit())?;
    let (number, unit) = text.split_at(unit);
    let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(number.parse::<u64>().ok()?.checked_mul(*millis)?))
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        duration(&text).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is no span of time; one like 10s, 15m, 2h or 7d"))
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        let whole =
            |(_, unit): &&(&str, u64)| millis > 0 && millis.is_multiple_of(u128::from(*unit));
        let (unit, size) = UNITS.iter().rev().find(whole).unwrap_or(&UNITS[1]);
        write!(f, "{}{unit}", millis / u128::from(*size))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9]+(ms|s|m|h|d)$", "examples": ["10s", "7d"]})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_shown_as_they_are_read() {
        for (text, shown) in [
            ("25ms", Some("25ms")),
            ("1000ms", Some("1s")),
            ("90m", Some("90m")),
            ("48h", Some("2d")),
            ("0s", Some("0s")),
            ("5", None),
            ("-5s", None),
            ("1.5s", None),
            ("2w", None),
            ("99999999999999999999s", None),
        ] {
            let read = duration(text).map(|span| Span(span).to_string());
            assert_eq!(read.as_deref(), shown, "{text}");
        }
    }
}
