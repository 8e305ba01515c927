//! Strings: in place where they have no escapes, copied where they do, passed where they are long.

use memchr::memchr2;

use super::broken::{Broken, Why};
use super::walk::Json;
use crate::window::REACH;

impl Json<'_> {
    /// Gives the string at the next byte to `taken`, or `taken` back if it is too long to be kept.
    ///
    /// A broken escape stays as it is written: no name that anybody keeps depends on it.
    #[inline]
    pub(super) fn text<F: FnOnce(&[u8]) -> T, T>(
        &mut self,
        taken: F,
    ) -> Result<Result<T, F>, Broken> {
        let mut from = 1;
        let mut escapes = false;
        loop {
            let seen = self.window.seen();
            match memchr2(b'"', b'\\', &seen[from.min(seen.len())..]) {
                Some(found) if seen[from + found] == b'"' => {
                    let end = from + found;
                    let taken = if escapes {
                        self.scratch.clear();
                        unescape(&self.window.seen()[1..end], &mut self.scratch);
                        taken(&self.scratch)
                    } else {
                        taken(&seen[1..end])
                    };
                    self.window.advance(end + 1);
                    return Ok(Ok(taken));
                }
                Some(found) => {
                    escapes = true;
                    // The escaped byte may be out of sight.
                    from += found + 2;
                }
                None => from = from.max(seen.len()),
            }
            let seen = self.window.seen().len();
            if from >= seen {
                if seen >= REACH {
                    self.skip_string(true)?;
                    return Ok(Err(taken));
                }
                if !self.more()? {
                    return Err(self.broken(Why::End));
                }
            }
        }
    }
}

fn unescape(text: &[u8], into: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        into.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1).copied();
        rest = &rest[(at + 2).min(rest.len())..];
        let plain = match escape {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'u') => {
                rest = unicode(rest, into);
                continue;
            }
            Some(other) => other,
            None => b'\\',
        };
        into.push(plain);
    }
    into.extend_from_slice(rest);
}

/// Replaces the digits after `\u`, and those of a second half of a pair, and gives what is behind.
fn unicode<'t>(rest: &'t [u8], into: &mut Vec<u8>) -> &'t [u8] {
    let Some(first) = hex4(rest) else {
        into.extend_from_slice(b"\\u");
        return rest;
    };
    let mut rest = &rest[4..];
    let mut units = [first, 0];
    let mut length = 1;
    if (0xd800..0xdc00).contains(&first)
        && let Some(second) = rest.strip_prefix(b"\\u").and_then(hex4)
    {
        units[1] = second;
        length = 2;
        rest = &rest[6..];
    }
    for unit in char::decode_utf16(units[..length].iter().copied()) {
        let character = unit.unwrap_or(char::REPLACEMENT_CHARACTER);
        into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    rest
}

fn hex4(text: &[u8]) -> Option<u16> {
    let digits = std::str::from_utf8(text.get(..4)?).ok()?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    fn read(text: Vec<u8>) -> (Option<String>, Option<(u64, u64)>) {
        let mut json = Json::new(Window::new(Box::new(std::io::Cursor::new(text))));
        let text = json.string(|text| String::from_utf8_lossy(text).into_owned()).unwrap();
        assert_eq!(json.peek_or_end(), Ok(None));
        (text, json.long)
    }

    #[test]
    fn escapes_are_replaced() {
        for (text, expected) in [
            (r#""""#, ""),
            (r#""a""#, "a"),
            (r#""a\"b\\""#, "a\"b\\"),
            (r#""\/\b\f\n\r\t""#, "/\u{8}\u{c}\n\r\t"),
            (r#""\u0041\u00e9""#, "A\u{e9}"),
            (r#""\ud83d\ude00!""#, "\u{1f600}!"),
            (r#""\ud83d!""#, "\u{fffd}!"),
            (r#""\ude00\u0041""#, "\u{fffd}A"),
            (r#""\u00g1""#, "\\u00g1"),
            (r#""\u00""#, "\\u00"),
        ] {
            assert_eq!(read(text.into()).0.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_nobody_keeps_is_passed() {
        for (length, kept) in [(REACH - 2, true), (REACH * 8, false), (REACH * 32, false)] {
            let mut text = vec![b'"'];
            text.resize(length, b'x');
            text.push(b'"');
            let (read, long) = read(text);
            assert_eq!((read.is_some(), long), (kept, (!kept).then_some((1, 0))), "{length}");
        }
    }

    #[test]
    fn an_escape_at_the_edge_of_sight_is_whole() {
        for offset in 0..4 {
            // The window is filled once; the escape lies across its end.
            let mut text = vec![b' '; 256 * 1024 - 4 + offset];
            text.extend_from_slice(br#""\"\"""#);
            assert_eq!(read(text).0.as_deref(), Some("\"\""), "{offset}");
        }
    }
}
