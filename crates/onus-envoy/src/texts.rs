//! Texts of a request that are only looked at.

use std::iter;

/// Texts with a number each, one behind the other: to keep each by itself would take an allocation
/// for each.
#[derive(Default)]
pub(crate) struct Texts(Vec<u8>);

/// Room for the texts of most requests.
const ROOM: usize = 192;

impl Texts {
    /// Keeps a text under a number, which may have several.
    pub(crate) fn push(&mut self, number: u32, text: &[u8]) {
        let Ok(len) = u32::try_from(text.len()) else { return };
        if self.0.is_empty() {
            self.0 = Vec::with_capacity(ROOM);
        }
        self.0.extend_from_slice(&number.to_ne_bytes());
        self.0.extend_from_slice(&len.to_ne_bytes());
        self.0.extend_from_slice(text);
    }

    /// The texts under a number, in the order in which they came.
    pub(crate) fn of(&self, number: u32) -> impl Iterator<Item = &[u8]> {
        self.all().filter(move |(other, _)| *other == number).map(|(_, text)| text)
    }

    fn all(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let mut rest = self.0.as_slice();
        iter::from_fn(move || {
            let (number, behind) = rest.split_first_chunk()?;
            let (len, behind) = behind.split_first_chunk()?;
            let (text, behind) = behind.split_at_checked(u32::from_ne_bytes(*len) as usize)?;
            rest = behind;
            Some((u32::from_ne_bytes(*number), text))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_under_their_number_in_order() {
        let mut texts = Texts::default();
        let long = vec![b'x'; 70_000];
        for (number, text) in [(1, &b"a"[..]), (0, b""), (1, b"bc"), (7, &long)] {
            texts.push(number, text);
        }
        for (number, expected) in
            [(0, &[&b""[..]][..]), (1, &[b"a", b"bc"]), (2, &[]), (7, &[&long])]
        {
            assert_eq!(texts.of(number).collect::<Vec<_>>(), expected, "{number}");
        }
        assert_eq!(Texts::default().of(0).next(), None);
    }
}
