//! Walking a document with a pencil: what is not what it should be is written down with its place.

use std::cell::RefCell;
use std::time::Duration;

use crate::node::{Node, Value};
use crate::policy::Place;
use crate::unread::{Unread, Why};

/// Where a document comes from, and what in it could not be read.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    pub(crate) file: &'a str,
    /// Lines of the file before the document.
    pub(crate) lines_before: u64,
    pub(crate) unread: RefCell<Vec<Unread>>,
}

/// A value in a document, and the way to it.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    pub(crate) node: &'a Node,
    source: &'a Source<'a>,
    way: String,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(node: &'a Node, source: &'a Source<'a>, way: impl Into<String>) -> Self {
        Self { node, source, way: way.into() }
    }

    /// Another document inside of this value, whose lines are counted from it.
    pub(crate) fn inside<'b>(&self, node: &'b Node, source: &'b Source<'b>) -> Cursor<'b> {
        Cursor { node, source, way: self.way.clone() }
    }

    /// A source for a document inside of this value.
    pub(crate) fn source_inside(&self) -> Source<'a> {
        // The line of a block is that of its first line.
        let lines_before = self.source.lines_before + self.node.line - 1;
        Source { file: self.source.file, lines_before, unread: RefCell::default() }
    }

    /// Takes over what could not be read inside of this value.
    pub(crate) fn take_unread(&self, inside: Source<'_>) {
        self.source.unread.borrow_mut().append(&mut inside.unread.into_inner());
    }

    /// The same value, called by the kind and name of the object that it is.
    pub(crate) fn named(&self, way: impl Into<String>) -> Self {
        Self { way: way.into(), ..self.clone() }
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            file: self.source.file.to_owned(),
            line: self.source.lines_before + self.node.line,
            object: self.way.clone(),
        }
    }

    pub(crate) fn unread(&self, why: Why) {
        self.source.unread.borrow_mut().push(Unread { place: self.place(), why });
    }

    fn into(&self, node: &'a Node, step: &str) -> Self {
        let way = match (self.way.is_empty(), step.starts_with('[')) {
            (true, _) => step.to_owned(),
            (false, true) => format!("{}{step}", self.way),
            (false, false) if self.way.ends_with(' ') => format!("{}{step}", self.way),
            (false, false) => format!("{}.{step}", self.way),
        };
        Self { node, source: self.source, way }
    }

    /// The value at a key; `null` is as good as nothing.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        let found = self.node.get(key).filter(|node| node.value != Value::Null)?;
        Some(self.into(found, key))
    }

    /// The same, by a name of protobuf in any of its spellings: `num_retries`, `numRetries`.
    pub(crate) fn proto(&self, key: &str) -> Option<Self> {
        let (name, found) = self
            .node
            .entries()
            .iter()
            .find(|(name, node)| same_field(name, key) && node.value != Value::Null)?;
        Some(self.into(found, name))
    }

    pub(crate) fn at(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self.clone(), |at, key| at.get(key))
    }

    /// The values of a list.
    pub(crate) fn items(&self) -> Vec<Self> {
        match &self.node.value {
            Value::List(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.into(item, &format!("[{index}]")))
                .collect(),
            Value::Null => Vec::new(),
            Value::Bool(_) | Value::Number(_) | Value::Text(_) | Value::Map(_) => {
                self.not_a("a list");
                Vec::new()
            }
        }
    }

    /// The values of the list at a key; none where it is missing.
    pub(crate) fn list(&self, key: &str) -> Vec<Self> {
        self.get(key).map(|list| list.items()).unwrap_or_default()
    }

    /// The entries of a map.
    pub(crate) fn entries(&self) -> Vec<(&'a str, Self)> {
        if !matches!(self.node.value, Value::Map(_) | Value::Null) {
            self.not_a("a map");
        }
        let entry = |(key, node): &'a (String, Node)| (key.as_str(), self.into(node, key));
        self.node.entries().iter().map(entry).collect()
    }

    /// What is in a map or a list; nothing is in anything else. The key in a list is empty.
    pub(crate) fn children(&self) -> Vec<(&'a str, Self)> {
        match &self.node.value {
            Value::Map(_) => self.entries(),
            Value::List(_) => self.items().into_iter().map(|item| ("", item)).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Text(_) => Vec::new(),
        }
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                self.not_a("a text");
                None
            }
        }
    }

    /// A number that may be written as a text, and a bare status in a list of words the other way
    /// round.
    pub(crate) fn word(&self) -> Option<String> {
        match &self.node.value {
            Value::Text(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            Value::Null | Value::Bool(_) | Value::List(_) | Value::Map(_) => {
                self.not_a("a word");
                None
            }
        }
    }

    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.node.value {
            Value::Bool(flag) => Some(*flag),
            Value::Null | Value::Number(_) | Value::Text(_) | Value::List(_) | Value::Map(_) => {
                self.not_a("true or false");
                None
            }
        }
    }

    pub(crate) fn number(&self) -> Option<f64> {
        let number = match &self.node.value {
            Value::Number(number) => Some(*number),
            Value::Text(text) => text.parse().ok(),
            // A wrapper of protobuf, as Go prints it.
            Value::Map(_) => return self.get("value").and_then(|value| value.number()),
            Value::Null | Value::Bool(_) | Value::List(_) => None,
        };
        let number = number.filter(|number| number.is_finite() && *number >= 0.0);
        if number.is_none() {
            self.not_a("a number");
        }
        number
    }

    pub(crate) fn count(&self) -> Option<u32> {
        let number = self.number()?;
        if number.fract() != 0.0 || number > f64::from(u32::MAX) {
            self.not_a("a count");
            return None;
        }
        Some(number as u32)
    }

    /// A time; none is meant by zero.
    pub(crate) fn duration(&self) -> Option<Duration> {
        let time = match &self.node.value {
            Value::Text(text) => duration(text),
            // As Go prints a zero.
            Value::Number(0.0) => Some(Duration::ZERO),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::List(_) | Value::Map(_) => {
                None
            }
        };
        if time.is_none() {
            self.not_a("a time such as 250ms");
        }
        time.filter(|time| !time.is_zero())
    }

    /// Writes down each field that is none of these.
    pub(crate) fn only(&self, known: &[&str]) {
        for (key, value) in self.entries() {
            if !known.iter().any(|known| same_field(key, known)) {
                value.unread(Why::UnknownField);
            }
        }
    }

    fn not_a(&self, wanted: &'static str) {
        let found = match &self.node.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(flag) => format!("`{flag}`"),
            Value::Number(number) => format!("`{number}`"),
            Value::Text(text) => format!("`{}`", shortened(text)),
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a map".to_owned(),
        };
        self.unread(Why::NotA { wanted, found });
    }
}

/// Enough of a text to find it.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}\u{2026}", &text[..end]),
        None => text.to_owned(),
    }
}

fn same_field(one: &str, other: &str) -> bool {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    one == other || plain(one) == plain(other)
}

/// A time as Go and protobuf write it: `1m30s`, `0.100s`, `250ms`.
fn duration(text: &str) -> Option<Duration> {
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let unit = rest.find(|at: char| at != '.' && !at.is_ascii_digit())?;
        let (number, after) = rest.split_at(unit);
        let end = after.find(|at: char| at == '.' || at.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let scale = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "\u{b5}s" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * scale;
        rest = after;
    }
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_they_are_written() {
        for (text, expected) in [
            ("2s", Some(2_000)),
            ("0.100s", Some(100)),
            ("250ms", Some(250)),
            ("1m30s", Some(90_000)),
            ("1h", Some(3_600_000)),
            ("0s", Some(0)),
            ("0", Some(0)),
            ("", None),
            ("2", None),
            ("2 s", None),
            ("-1s", None),
            ("fast", None),
            ("1d", None),
            ("99999999999999999999999s", None),
        ] {
            let found = duration(text).map(|time| time.as_millis());
            assert_eq!(found, expected, "{text:?}");
        }
    }
}
