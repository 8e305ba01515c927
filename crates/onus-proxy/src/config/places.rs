//! Where each setting comes from: a line of the file, or a variable. What is found wrong only when all
//! is read is told with that.

use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// Where each setting comes from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Vec<(String, String)>);

impl Places {
    /// The lines of a text, which has been read before.
    pub(super) fn of(text: &str) -> Self {
        let mut places = Self::default();
        if let Ok(document) = serde_saphyr::from_str::<Keys>(text) {
            places.collect("", document);
        }
        places
    }

    /// A variable wins over the file.
    pub(super) fn of_variable(&mut self, path: &[String], name: &str) {
        self.0.push((path.join("."), name.to_owned()));
    }

    /// Where the setting at this path comes from, or the nearest one around it: that may be missing.
    pub(super) fn find(&self, field: &str) -> Option<&str> {
        let is_around = |path: &str| {
            let inside = field.strip_prefix(path);
            inside.is_some_and(|inside| inside.is_empty() || inside.starts_with(['.', ' ']))
        };
        let around = self.0.iter().filter(|(path, _)| is_around(path));
        // The last of equals: a variable.
        around.max_by_key(|(path, _)| path.len()).map(|(_, place)| &**place)
    }

    fn collect(&mut self, above: &str, Keys(keys): Keys) {
        for (key, below) in keys {
            let path = if above.is_empty() { key.value } else { format!("{above}.{}", key.value) };
            self.collect(&path, below);
            self.0.push((path, format!("line {}", key.referenced.line())));
        }
    }
}

/// The keys of a document, with their lines; values, and what is in lists, are left out.
struct Keys(Vec<(Spanned<String>, Self)>);

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeysVisitor)
    }
}

struct KeysVisitor;

impl<'de> Visitor<'de> for KeysVisitor {
    type Value = Keys;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Keys, A::Error> {
        let mut keys = Vec::new();
        while let Some(entry) = map.next_entry()? {
            keys.push(entry);
        }
        Ok(Keys(keys))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Keys, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Keys(Vec::new()))
    }

    fn visit_str<E>(self, _: &str) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }

    fn visit_unit<E>(self) -> Result<Keys, E> {
        Ok(Keys(Vec::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_its_line_or_that_of_what_is_around_it() {
        let text = "service: a\nlimits:\n  requests: 0\n  headers: 10\ncallees:\n  shop.b/c:\n    \
                    address: [\"a:1\", \"b:1\"]\n    retry: {attempts: 2,\n      budget: {}}\nnothing:\n";
        let mut places = Places::of(text);
        places.of_variable(&["limits".to_owned(), "headers".to_owned()], "ONUS_LIMITS_HEADERS");
        for (field, place) in [
            ("service", Some("line 1")),
            ("limits", Some("line 2")),
            ("limits.requests", Some("line 3")),
            ("limits.streams", Some("line 2")),
            ("limits.headers", Some("ONUS_LIMITS_HEADERS")),
            ("callees.shop.b/c.address", Some("line 7")),
            ("callees.shop.b/c.retry.budget", Some("line 9")),
            ("callees.shop.b/c POST /x.retry", Some("line 6")),
            ("callees.shop.b/cd", Some("line 5")),
            ("nothing", Some("line 10")),
            ("workers", None),
        ] {
            assert_eq!(places.find(field), place, "{field}");
        }
        assert_eq!(Places::of("- a\n").find("service"), None);
    }
}
