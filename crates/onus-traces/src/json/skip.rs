//! Passing over values that nobody looks at. It counts brackets and remembers nothing, so that no
//! depth and no length is too much.

use memchr::memchr2;

use super::broken::{Broken, Why};
use super::walk::Json;

impl Json<'_> {
    /// Passes over one value.
    pub(crate) fn skip(&mut self) -> Result<(), Broken> {
        match self.peek()? {
            b'"' => self.skip_string(false),
            b'{' | b'[' => self.skip_nested(),
            _ => {
                let length = self.word()?;
                self.window.advance(length);
                Ok(())
            }
        }
    }

    /// How long the number or word at the next byte is.
    pub(super) fn word(&mut self) -> Result<usize, Broken> {
        let in_word = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-' | b'+' | b'.');
        loop {
            let seen = self.window.seen();
            let length = seen.iter().position(|byte| !in_word(byte));
            match length {
                Some(0) => {
                    let found = seen[0];
                    return Err(self.broken(Why::Byte { found, wanted: "a value" }));
                }
                Some(length) => return Ok(length),
                None => {
                    let sight = seen.len();
                    if !self.more()? {
                        // At the end of the input, or a number of a whole window.
                        return if sight < LONGEST_WORD {
                            Ok(sight)
                        } else {
                            Err(self.broken(Why::Message("a number without an end")))
                        };
                    }
                }
            }
        }
    }

    fn skip_nested(&mut self) -> Result<(), Broken> {
        let mut depth = 0_u64;
        loop {
            let seen = self.window.seen();
            let Some(at) = seen.iter().position(|&byte| SIGNS[byte as usize]) else {
                let all = seen.len();
                self.window.advance(all);
                if !self.more()? {
                    return Err(self.broken(Why::End));
                }
                continue;
            };
            let sign = seen[at];
            self.window.advance(at);
            if sign == b'"' {
                self.skip_string(false)?;
                continue;
            }
            self.window.advance(1);
            if matches!(sign, b'{' | b'[') {
                depth += 1;
            } else {
                depth -= 1;
                if depth == 0 {
                    return Ok(());
                }
            }
        }
    }

    /// Passes over the string at the next byte. It is counted as long if `wanted`, because somebody
    /// would have kept it, or if nobody has such strings in a dump.
    pub(super) fn skip_string(&mut self, wanted: bool) -> Result<(), Broken> {
        let begin = self.window.at();
        self.window.advance(1);
        loop {
            let seen = self.window.seen();
            match memchr2(b'"', b'\\', seen) {
                Some(at) if seen[at] == b'"' => {
                    self.window.advance(at + 1);
                    break;
                }
                Some(at) => {
                    self.window.advance(at + 1);
                    if self.window.first().is_none() && !self.more()? {
                        return Err(self.broken(Why::End));
                    }
                    self.window.advance(1);
                }
                None => {
                    let all = seen.len();
                    self.window.advance(all);
                    if !self.more()? {
                        return Err(self.broken(Why::End));
                    }
                }
            }
        }
        if wanted || self.window.at() - begin > LONG {
            let (count, _) = self.long.unwrap_or_default();
            let first = self.long.map_or(begin, |(_, first)| first);
            self.long = Some((count + 1, first));
        }
        Ok(())
    }
}

/// A stack trace or a statement may have some hundred kilobytes; above this it is worth a word.
const LONG: u64 = 1024 * 1024;

/// No number has as many digits.
const LONGEST_WORD: usize = 4096;

/// The bytes that change the depth, or begin a string.
const SIGNS: [bool; 256] = {
    let mut signs = [false; 256];
    let list = *b"\"{}[]";
    let mut i = 0;
    while i < list.len() {
        signs[list[i] as usize] = true;
        i += 1;
    }
    signs
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    #[test]
    fn passes_over_one_value() {
        for (text, rest) in [
            ("1,2", ","),
            ("true]", "]"),
            ("\"a\\\"]\" ,", " ,"),
            ("{\"a\":[{},\"}\"]}x", "x"),
            ("[[[[]]]] ", " "),
        ] {
            let mut json = Json::new(Window::new(Box::new(text.as_bytes())));
            json.skip().unwrap();
            assert!(json.window.seen().starts_with(rest.as_bytes()), "{text}");
        }
    }

    #[test]
    fn no_depth_is_too_much() {
        let deep = "[".repeat(3_000_000);
        let mut json = Json::new(Window::new(Box::new(deep.as_bytes())));
        let broken = json.skip().unwrap_err();
        assert_eq!((broken.at, broken.why), (3_000_000, Why::End));
    }

    #[test]
    fn a_very_long_string_is_counted_with_its_place() {
        let text = format!("[\"{}\",\"\",\"{0}\"]", "x".repeat(LONG as usize));
        let mut json = Json::new(Window::new(Box::new(text.as_bytes())));
        json.skip().unwrap();
        assert_eq!(json.long, Some((2, 1)));
    }
}
