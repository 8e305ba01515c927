//! Rows on disk: numbers of as many bytes as they need, texts with their length.

/// Writes a row.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

/// Reads a row; `None` where it ends too early, or says what cannot be.
pub(crate) struct Reader<'a>(&'a [u8]);

impl Writer {
    pub(crate) fn number(&mut self, mut number: u64) -> &mut Self {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
        self
    }

    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Counts with their number, so that a later version may have more of them.
    pub(crate) fn counts(&mut self, counts: &[u64]) -> &mut Self {
        self.number(counts.len() as u64);
        counts.iter().for_each(|&count| {
            self.number(count);
        });
        self
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
    }
}

impl<'a> Reader<'a> {
    pub(crate) fn new(row: &'a [u8]) -> Self {
        Self(row)
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// Counts; those that the writer did not know are zero, those that this reader does not know
    /// are left out.
    pub(crate) fn counts<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut counts = [0; N];
        for at in 0..self.number()? {
            let count = self.number()?;
            if let Some(place) = counts.get_mut(usize::try_from(at).ok()?) {
                *place = count;
            }
        }
        Some(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut writer = Writer::default();
        numbers.iter().for_each(|&number| {
            writer.number(number);
        });
        let row = writer.text("").text("\u{e9}t\u{e9}").counts(&[1, 2, 3]).finish();
        let mut reader = Reader::new(&row);
        assert!(numbers.iter().all(|&number| reader.number() == Some(number)));
        assert_eq!((reader.text(), reader.text()), (Some(""), Some("\u{e9}t\u{e9}")));
        assert_eq!(reader.counts(), Some([1, 2, 3, 0]), "a newer reader has more counts");
        assert_eq!(reader.number(), None, "the row is over");
        let row = Writer::default().counts(&[1, 2, 3]).number(9).finish();
        let mut reader = Reader::new(&row);
        assert_eq!(
            (reader.counts(), reader.number()),
            (Some([1, 2]), Some(9)),
            "an older one fewer"
        );
    }

    #[test]
    fn a_row_cut_off_anywhere_is_refused() {
        let row = Writer::default().text("abc").counts(&[1, 500]).finish();
        for length in 0..row.len() {
            let mut reader = Reader::new(&row[..length]);
            assert!(reader.text().and_then(|_| reader.counts::<2>()).is_none(), "{length}");
        }
        assert_eq!(Reader::new(&[0xff; 11]).number(), None, "longer than any number");
    }
}
