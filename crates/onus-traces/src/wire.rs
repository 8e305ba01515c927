//! Protobuf that is walked and not built: fields of nested messages, over a window.

use crate::json::{Broken, Why};
use crate::window::{REACH, Window};

/// A reader of protobuf at one place of its input.
pub(crate) struct Wire<'r> {
    pub(crate) window: Window<'r>,
    /// Texts longer than anybody keeps, and where the first of them began.
    pub(crate) long: Option<(u64, u64)>,
}

/// What a field holds; of one with a length the bytes are yet to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    /// A number of either form.
    Number(u64),
    /// Something that ends at this place in the input.
    Until(u64),
}

impl<'r> Wire<'r> {
    pub(crate) fn new(window: Window<'r>) -> Self {
        Self { window, long: None }
    }

    /// The next field of a message that ends at `end`; none at its end.
    ///
    /// A field that is nothing known is passed over.
    pub(crate) fn field(&mut self, end: u64) -> Result<Option<(u32, Value)>, Broken> {
        if self.window.at() >= end || (end == u64::MAX && self.at_end()?) {
            return Ok(None);
        }
        let begin = self.window.at();
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).unwrap_or(0);
        let value = match key & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(self.fixed::<8>()?),
            2 => {
                let length = self.varint()?;
                let until = self.window.at().saturating_add(length);
                if until > end || length > LONGEST {
                    return Err(at(begin, Why::Message("a length beyond the end of its message")));
                }
                Value::Until(until)
            }
            5 => Value::Number(self.fixed::<4>()?),
            _ => return Err(at(begin, Why::Message("no kind of field of protobuf"))),
        };
        if number == 0 {
            return Err(at(begin, Why::Message("no field of protobuf")));
        }
        if self.window.at() > end {
            return Err(at(begin, Why::Message("a number beyond the end of its message")));
        }
        Ok(Some((number, value)))
    }

    /// Whether nothing is left of the input.
    pub(crate) fn at_end(&mut self) -> Result<bool, Broken> {
        Ok(!self.reach(1)?)
    }

    /// Gives the bytes of a value to `taken`. Nothing comes of a number, or of what is too long.
    pub(crate) fn bytes<T>(
        &mut self,
        value: Value,
        taken: impl FnOnce(&[u8]) -> T,
    ) -> Result<Option<T>, Broken> {
        let Value::Until(until) = value else { return Ok(None) };
        let begin = self.window.at();
        let length = until - begin;
        if length > REACH as u64 {
            self.count_long(begin);
            self.pass(until)?;
            return Ok(None);
        }
        let length = length as usize;
        if !self.reach(length)? {
            return Err(at(begin, Why::End));
        }
        let taken = taken(&self.window.seen()[..length]);
        self.window.advance(length);
        Ok(Some(taken))
    }

    /// Passes over a value, which is counted as long if nobody has such values in a dump.
    pub(crate) fn skip(&mut self, value: Value) -> Result<(), Broken> {
        match value {
            Value::Number(_) => Ok(()),
            Value::Until(until) => {
                let begin = self.window.at();
                if until - begin > LONG {
                    self.count_long(begin);
                }
                self.pass(until)
            }
        }
    }

    fn count_long(&mut self, begin: u64) {
        let (texts, first) = self.long.unwrap_or((0, begin));
        self.long = Some((texts + 1, first));
    }

    /// Goes to `until`.
    pub(crate) fn pass(&mut self, until: u64) -> Result<(), Broken> {
        while self.window.at() < until {
            if self.at_end()? {
                return Err(at(self.window.at(), Why::End));
            }
            let seen = self.window.seen().len() as u64;
            let step = seen.min(until - self.window.at());
            self.window.advance(step as usize);
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<u64, Broken> {
        let begin = self.window.at();
        let mut number = 0;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(at(begin, Why::Message("a number of more than ten bytes")))
    }

    fn fixed<const N: usize>(&mut self) -> Result<u64, Broken> {
        let bytes: [u8; N] = self.array()?;
        Ok(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// The next bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Broken> {
        if !self.reach(N)? {
            return Err(at(self.window.at(), Why::End));
        }
        let mut array = [0; N];
        array.copy_from_slice(&self.window.seen()[..N]);
        self.window.advance(N);
        Ok(array)
    }

    fn reach(&mut self, bytes: usize) -> Result<bool, Broken> {
        self.window.reach(bytes).map_err(|error| at(self.window.at(), Why::input(&error)))
    }
}

fn at(at: u64, why: Why) -> Broken {
    Broken { at, why }
}

/// A message may be as long as protobuf allows.
const LONGEST: u64 = i32::MAX as u64;

/// A stack trace or a statement may have some hundred kilobytes; above this it is worth a word.
const LONG: u64 = 1024 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(bytes: &[u8]) -> Wire<'_> {
        Wire::new(Window::new(Box::new(bytes)))
    }

    #[test]
    fn fields_of_every_form() {
        let bytes =
            [8, 0x96, 1, 0x11, 1, 0, 0, 0, 0, 0, 0, 2, 0x1a, 2, b'h', b'i', 0x25, 7, 0, 0, 0];
        let mut wire = wire(&bytes);
        assert_eq!(wire.field(u64::MAX), Ok(Some((1, Value::Number(150)))));
        assert_eq!(wire.field(u64::MAX), Ok(Some((2, Value::Number(1 | 2 << 56)))));
        let Ok(Some((3, text))) = wire.field(u64::MAX) else { panic!("a text") };
        assert_eq!(wire.bytes(text, <[u8]>::to_vec), Ok(Some(b"hi".to_vec())));
        assert_eq!(wire.field(u64::MAX), Ok(Some((4, Value::Number(7)))));
        assert_eq!(wire.field(u64::MAX), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_told_with_its_place() {
        fn check(bytes: &[u8], end: u64, at: u64, why: Why) {
            assert_eq!(wire(bytes).field(end), Err(Broken { at, why }), "{bytes:?}");
        }
        check(&[8], u64::MAX, 1, Why::End);
        check(&[0x0d, 1, 2], u64::MAX, 1, Why::End);
        check(&[0x80; 20], u64::MAX, 0, Why::Message("a number of more than ten bytes"));
        check(&[0x0b], u64::MAX, 0, Why::Message("no kind of field of protobuf"));
        check(&[0x02, 0], u64::MAX, 0, Why::Message("no field of protobuf"));
        let beyond = Why::Message("a length beyond the end of its message");
        check(&[0x0a, 5], 4, 0, beyond.clone());
        check(
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
            u64::MAX,
            0,
            beyond,
        );
        let number = Why::Message("a number beyond the end of its message");
        check(&[8, 0x96, 1], 2, 0, number);
    }

    #[test]
    fn what_nobody_keeps_is_passed() {
        let mut bytes = vec![0x0a, 0x80, 0x80, 0x10];
        bytes.resize(4 + 262_144, b'x');
        bytes.extend([8, 1]);
        let mut wire = wire(&bytes);
        let Ok(Some((1, text))) = wire.field(u64::MAX) else { panic!("a text") };
        assert_eq!(wire.bytes(text, |_| ()), Ok(None));
        assert_eq!(
            (wire.long, wire.field(u64::MAX)),
            (Some((1, 4)), Ok(Some((1, Value::Number(1)))))
        );
    }
}
