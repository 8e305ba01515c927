//! Names as numbers.

use std::collections::HashMap;

/// The names of services, each as a number. Number 0 is the service without a name.
#[derive(Debug)]
pub(crate) struct Names {
    numbers: HashMap<Box<str>, u32>,
    names: Vec<Box<str>>,
    limit: usize,
}

impl Names {
    /// No name; at most `limit` will be kept.
    pub(crate) fn new(limit: usize) -> Self {
        Self { numbers: HashMap::new(), names: vec![UNNAMED.into()], limit }
    }

    /// The number of `name`, or none when there are too many names.
    pub(crate) fn number(&mut self, name: &[u8]) -> Option<u32> {
        if name.is_empty() {
            return Some(0);
        }
        // Only what is no UTF-8 is copied here, or what is longer than a name is.
        let name = String::from_utf8_lossy(name);
        let name = &name[..name.floor_char_boundary(LONGEST)];
        if let Some(&number) = self.numbers.get(name) {
            return Some(number);
        }
        if self.names.len() > self.limit {
            return None;
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.into(), number);
        // A dump must not be able to write to somebody's terminal.
        self.names.push(name.replace(char::is_control, "\u{fffd}").into());
        Some(number)
    }

    /// The name of `number`.
    pub(crate) fn name(&self, number: u32) -> &str {
        &self.names[number as usize]
    }

    /// How many numbers there are.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}

/// How a service without a name is shown.
const UNNAMED: &str = "(unnamed)";

/// Bytes; a longer name is cut.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number() {
        let mut names = Names::new(2);
        assert_eq!(names.number(b""), Some(0));
        assert_eq!(names.number(b"a"), Some(1));
        assert_eq!(names.number(b"b\xff"), Some(2));
        assert_eq!(names.number(b"c"), None);
        assert_eq!(names.number(b"a"), Some(1));
        assert_eq!((names.name(0), names.name(2), names.len()), ("(unnamed)", "b\u{fffd}", 3));
    }

    #[test]
    fn a_name_has_no_power_over_a_terminal() {
        let mut names = Names::new(9);
        let number = names.number(b"\x1b[2Jshop\n").expect("there is room");
        assert_eq!(names.name(number), "\u{fffd}[2Jshop\u{fffd}");
        assert_eq!(names.number(b"\x1b[2Jshop\n"), Some(number));
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let mut names = Names::new(9);
        let number = names.number("\u{e9}".repeat(500).as_bytes()).expect("there is room");
        assert_eq!(names.name(number), "\u{e9}".repeat(128));
    }
}
