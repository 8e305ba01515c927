//! Text by lines: lists, and tables whose quoted cells may hold line breaks.

use memchr::{memchr, memchr_iter};

use crate::json::{Broken, Why};
use crate::window::{REACH, Window};

/// Gives the next record to `taken`, without its line break, and what it made of it; nothing of one
/// that is too long to be kept; none at the end.
///
/// If `quoted`, a line break between double quotes does not end a record. A quote that is never
/// closed costs its own line only.
pub(crate) fn next<T>(
    window: &mut Window<'_>,
    quoted: bool,
    taken: impl FnOnce(&[u8]) -> T,
) -> Result<Option<Option<T>>, Broken> {
    let mut state = Search::default();
    loop {
        let seen = window.seen();
        if let Some(end) = state.end(seen, quoted) {
            let record = taken(without_return(&seen[..end]));
            window.advance(end + 1);
            return Ok(Some(Some(record)));
        }
        if seen.len() >= REACH {
            pass_line(window)?;
            return Ok(Some(None));
        }
        if !more(window)? {
            return Ok(last(window, &state, taken));
        }
    }
}

/// What is left at the end of the input.
fn last<T>(
    window: &mut Window<'_>,
    state: &Search,
    taken: impl FnOnce(&[u8]) -> T,
) -> Option<Option<T>> {
    let seen = window.seen();
    if seen.is_empty() {
        return None;
    }
    let first_line = memchr(b'\n', seen);
    let (record, end) = match first_line {
        Some(end) if state.open => (None, end + 1),
        Some(_) | None => (Some(taken(without_return(seen))), seen.len()),
    };
    window.advance(end);
    Some(record)
}

/// How far a search for the end of a record has come.
#[derive(Default)]
struct Search {
    searched: usize,
    /// Between quotes.
    open: bool,
}

impl Search {
    fn end(&mut self, seen: &[u8], quoted: bool) -> Option<usize> {
        while let Some(at) = memchr(b'\n', &seen[self.searched..]) {
            let end = self.searched + at;
            if quoted {
                self.open ^= odd_quotes(&seen[self.searched..end]);
            }
            self.searched = end + 1;
            if !self.open {
                return Some(end);
            }
        }
        if quoted {
            self.open ^= odd_quotes(&seen[self.searched..]);
        }
        self.searched = seen.len();
        None
    }
}

fn odd_quotes(text: &[u8]) -> bool {
    memchr_iter(b'"', text).count() % 2 == 1
}

fn without_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn pass_line(window: &mut Window<'_>) -> Result<(), Broken> {
    loop {
        let seen = window.seen();
        let end = memchr(b'\n', seen);
        window.advance(end.map_or(seen.len(), |at| at + 1));
        if end.is_some() || !more(window)? {
            return Ok(());
        }
    }
}

fn more(window: &mut Window<'_>) -> Result<bool, Broken> {
    window.more().map_err(|error| Broken { at: window.at(), why: Why::input(&error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str, quoted: bool) -> Vec<Option<String>> {
        let mut window = Window::new(Box::new(text.as_bytes()));
        let mut records = Vec::new();
        let text = |record: &[u8]| String::from_utf8_lossy(record).into_owned();
        while let Some(record) = next(&mut window, quoted, text).unwrap() {
            records.push(record);
        }
        records
    }

    #[test]
    fn lines_and_quoted_line_breaks() {
        fn check(text: &str, quoted: bool, expected: &[&str]) {
            let expected: Vec<_> =
                expected.iter().map(|record| Some((*record).to_owned())).collect();
            assert_eq!(records(text, quoted), expected, "{text:?}");
        }
        check("", true, &[]);
        check("a\nb\r\n\nc", true, &["a", "b", "", "c"]);
        check("a,\"b\nc\"\nd\n", true, &["a,\"b\nc\"", "d"]);
        check("a,\"b\nc\"\nd\n", false, &["a,\"b", "c\"", "d"]);
        check("\"\"\"\n\"\nx", true, &["\"\"\"\n\"", "x"]);
    }

    #[test]
    fn what_is_too_long_costs_its_line() {
        let text = format!("a\n{}\nb\n", "x".repeat(3_000_000));
        let expected = [Some("a".to_owned()), None, Some("b".to_owned())];
        assert_eq!(records(&text, true), expected);
        // A quote that is never closed.
        assert_eq!(records("\"a\nb\n", true), [None, Some("b".to_owned())]);
        let many = format!("\"a\n{}", "b\n".repeat(300_000));
        let records = records(&many, true);
        assert_eq!((records.len(), &records[0]), (300_001, &None));
    }
}
