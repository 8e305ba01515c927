//! The token of a live request: its place, and how often the place was used.

use std::fmt;

/// What finds a live inbound request in the process that serves it, and nothing anywhere else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    pub(super) index: u32,
    pub(super) generation: u32,
}

impl Token {
    /// The length of a token's text.
    pub const TEXT_LEN: usize = 16;

    /// Reads what [`fmt::Display`] writes, and nothing else: 16 lower-case hexadecimal digits.
    #[must_use]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text: &[u8; Self::TEXT_LEN] = text.try_into().ok()?;
        let mut bits = 0;
        for &byte in text {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                _ => return None,
            };
            bits = bits << 4 | u64::from(digit);
        }
        Some(Self::from_bits(bits))
    }

    /// The token as that of one of several workers, each with a correlator of its own; for
    /// correlators of no more than 65,536 requests.
    #[must_use]
    pub const fn of_worker(self, worker: u16) -> Self {
        Self { index: self.index & 0xffff | (worker as u32) << 16, generation: self.generation }
    }

    /// Where its request is, whatever was there before: the key of a record.
    #[must_use]
    pub const fn place(self) -> u32 {
        self.index
    }

    /// The token's text; each request has one, so it is not left to the formatter.
    pub(crate) fn text(self) -> [u8; Self::TEXT_LEN] {
        let bits = self.bits();
        let digit = |at: usize| b"0123456789abcdef"[(bits >> (60 - 4 * at)) as usize & 0xf];
        std::array::from_fn(digit)
    }

    pub(super) const fn bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.text();
        // Digits are text.
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_a_tokens_own_text_is_one() {
        let token = Token { index: 0xab, generation: 0x0123_4567 };
        assert_eq!(token.to_string(), "01234567000000ab");
        assert_eq!(Token::parse(b"01234567000000ab"), Some(token));
        for text in [
            "",
            "0",
            "01234567000000a",
            "01234567000000abc",
            "01234567000000AB",
            "01234567-00000ab",
        ] {
            assert_eq!(Token::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn workers_have_places_of_their_own() {
        let token = Token { index: 0xabcd, generation: 7 };
        let (one, two) = (token.of_worker(0), token.of_worker(0xffff));
        assert_eq!((one, one.place()), (token, 0xabcd));
        assert_eq!((two.place(), two.generation), (0xffff_abcd, 7));
        assert_eq!(two.of_worker(3).place(), 0x0003_abcd);
    }

    proptest! {
        #[test]
        fn text_is_read_as_it_is_written(index: u32, generation: u32) {
            let token = Token { index, generation };
            let text = token.to_string();
            prop_assert_eq!(text.len(), Token::TEXT_LEN);
            prop_assert_eq!(Token::parse(text.as_bytes()), Some(token));
        }
    }
}
