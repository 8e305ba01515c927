//! The walk through a document: objects, arrays, keys, values.

use std::io;

use super::broken::{Broken, Why};
use crate::window::Window;

/// A reader of JSON at one place of its input.
///
/// Whoever walks asks for what it expects and skips the rest. What has another type than expected
/// is skipped and comes out as nothing, so that a strange value costs itself only; an error is a
/// document that is no JSON.
pub(crate) struct Json<'r> {
    pub(crate) window: Window<'r>,
    /// A text whose escapes had to be replaced.
    pub(super) scratch: Vec<u8>,
    /// Values that were longer than anybody keeps, and where the first of them began.
    pub(crate) long: Option<(u64, u64)>,
}

/// Where an object or array is walked to. Begins before the first member.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    begun: bool,
}

impl<'r> Json<'r> {
    pub(crate) fn new(window: Window<'r>) -> Self {
        Self { window, scratch: Vec::new(), long: None }
    }

    /// The first byte of the next value or sign; none at the end of the input.
    #[inline]
    pub(crate) fn peek_or_end(&mut self) -> Result<Option<u8>, Broken> {
        loop {
            let seen = self.window.seen();
            let blank = |byte: &u8| matches!(byte, b' ' | b'\n' | b'\r' | b'\t');
            let skip = match seen.first() {
                Some(byte) if !blank(byte) => return Ok(Some(*byte)),
                Some(_) => seen.iter().position(|byte| !blank(byte)).unwrap_or(seen.len()),
                None => 0,
            };
            self.window.advance(skip);
            if self.window.first().is_none() && !self.more()? {
                return Ok(None);
            }
        }
    }

    #[inline]
    pub(crate) fn peek(&mut self) -> Result<u8, Broken> {
        match self.peek_or_end()? {
            Some(byte) => Ok(byte),
            None => Err(self.broken(Why::End)),
        }
    }

    /// Goes into an object if there is one; skips anything else and tells so.
    #[inline]
    pub(crate) fn object(&mut self) -> Result<bool, Broken> {
        self.enter(b'{')
    }

    /// Goes into an array if there is one; skips anything else and tells so.
    #[inline]
    pub(crate) fn array(&mut self) -> Result<bool, Broken> {
        self.enter(b'[')
    }

    #[inline]
    fn enter(&mut self, sign: u8) -> Result<bool, Broken> {
        if self.peek()? == sign {
            self.window.advance(1);
            return Ok(true);
        }
        self.skip()?;
        Ok(false)
    }

    /// Goes to the next element of an array; false after the last.
    #[inline]
    pub(crate) fn element(&mut self, turn: &mut Turn) -> Result<bool, Broken> {
        self.next(turn, b']', "',' or ']'")
    }

    /// Goes to the next member of an object and gives its key to `known`; none after the last.
    #[inline]
    pub(crate) fn key<T>(
        &mut self,
        turn: &mut Turn,
        known: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Broken> {
        if !self.next(turn, b'}', "',' or '}'")? {
            return Ok(None);
        }
        let byte = self.peek()?;
        if byte != b'"' {
            return Err(self.broken(Why::Byte { found: byte, wanted: "a key" }));
        }
        // No key that anybody looks for is long.
        let key = match self.text(known)? {
            Ok(key) => key,
            Err(known) => known(b""),
        };
        match self.peek()? {
            b':' => self.window.advance(1),
            found => return Err(self.broken(Why::Byte { found, wanted: "':'" })),
        }
        Ok(Some(key))
    }

    #[inline]
    fn next(&mut self, turn: &mut Turn, close: u8, wanted: &'static str) -> Result<bool, Broken> {
        let byte = self.peek()?;
        if byte == close {
            self.window.advance(1);
            return Ok(false);
        }
        if turn.begun {
            if byte != b',' {
                return Err(self.broken(Why::Byte { found: byte, wanted }));
            }
            self.window.advance(1);
        }
        turn.begun = true;
        Ok(true)
    }

    /// Gives a string to `taken`; anything else is skipped.
    #[inline]
    pub(crate) fn string<T>(
        &mut self,
        taken: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Broken> {
        if self.peek()? == b'"' {
            return Ok(self.text(taken)?.ok());
        }
        self.skip()?;
        Ok(None)
    }

    /// Gives a string, or the text of a number, `true`, `false` or `null`, to `taken`.
    #[inline]
    pub(crate) fn scalar<T>(
        &mut self,
        taken: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Broken> {
        match self.peek()? {
            b'"' => Ok(self.text(taken)?.ok()),
            b'{' | b'[' => {
                self.skip()?;
                Ok(None)
            }
            _ => {
                let length = self.word()?;
                let taken = taken(&self.window.seen()[..length]);
                self.window.advance(length);
                Ok(Some(taken))
            }
        }
    }

    /// A whole number, also one that is written as a string, as 64-bit numbers in JSON often are.
    #[inline]
    pub(crate) fn integer(&mut self) -> Result<Option<u64>, Broken> {
        Ok(self.scalar(whole_number)?.flatten())
    }

    pub(super) fn more(&mut self) -> Result<bool, Broken> {
        self.window.more().map_err(|error| self.unreadable(&error))
    }

    fn unreadable(&self, error: &io::Error) -> Broken {
        let at = self.window.at() + self.window.seen().len() as u64;
        Broken { at, why: Why::input(error) }
    }

    #[cold]
    pub(crate) fn broken(&self, why: Why) -> Broken {
        Broken { at: self.window.at(), why }
    }
}

/// The number that `text` begins with; a fraction is cut off, as of microseconds written as floats.
fn whole_number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut number = 0_u64;
    let mut any = false;
    for digit in digits {
        number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
        any = true;
    }
    any.then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json<'_> {
        Json::new(Window::new(Box::new(text.as_bytes())))
    }

    #[test]
    fn walks_objects_and_arrays() {
        let mut json = json(" { \"a\" : [1, \"2\", 3.9], \"b\":\"x\\u00e9\\n\", \"c\":{}}");
        assert!(json.object().unwrap());
        let mut members = Turn::default();
        let key = |json: &mut Json<'_>, members: &mut Turn| {
            json.key(members, |key| String::from_utf8_lossy(key).into_owned()).unwrap()
        };
        assert_eq!(key(&mut json, &mut members).as_deref(), Some("a"));
        assert!(json.array().unwrap());
        let mut elements = Turn::default();
        let mut numbers = Vec::new();
        while json.element(&mut elements).unwrap() {
            numbers.push(json.integer().unwrap());
        }
        assert_eq!(numbers, [Some(1), Some(2), Some(3)]);
        assert_eq!(key(&mut json, &mut members).as_deref(), Some("b"));
        let text = json.string(|text| String::from_utf8_lossy(text).into_owned()).unwrap();
        assert_eq!(text.as_deref(), Some("x\u{e9}\n"));
        assert_eq!(key(&mut json, &mut members).as_deref(), Some("c"));
        assert!(!json.array().unwrap());
        assert_eq!(key(&mut json, &mut members), None);
        assert_eq!(json.peek_or_end(), Ok(None));
    }

    #[test]
    fn says_where_and_why_it_ends() {
        fn check(text: &str, at: u64, why: Why) {
            let mut json = json(text);
            let mut walk = || {
                json.object()?;
                let mut members = Turn::default();
                while json.key(&mut members, |_| ())?.is_some() {
                    json.skip()?;
                }
                Ok(())
            };
            assert_eq!(walk(), Err(Broken { at, why }), "{text}");
        }
        check("{\"a\":1", 6, Why::End);
        check("{\"a", 1, Why::End);
        check("{\"a\" 1}", 5, Why::Byte { found: b'1', wanted: "':'" });
        check("{\"a\":1 \"b\":2}", 7, Why::Byte { found: b'"', wanted: "',' or '}'" });
        check("{1:2}", 1, Why::Byte { found: b'1', wanted: "a key" });
        check("{\"a\":?}", 5, Why::Byte { found: b'?', wanted: "a value" });
        check("{\"a\":[[{]", 9, Why::End);
    }

    #[test]
    fn numbers_are_cut_to_whole_ones() {
        for (text, expected) in [
            ("12", Some(12)),
            ("1.5e3", Some(1)),
            ("-1", None),
            ("null", None),
            ("\"77\"", Some(77)),
            ("\"\"", None),
            ("{}", None),
            ("18446744073709551616", None),
        ] {
            assert_eq!(json(text).integer(), Ok(expected), "{text}");
        }
    }
}
