//! A header block in the form in which Envoy hands it to a plugin.

/// The bytes of a number.
const NUMBER: usize = 4;

/// Shows every line of `block`: the number of lines; of each the lengths of its name and its value;
/// then names and values, each ended by a zero. Numbers are little-endian. A block that is cut shows
/// what is whole.
pub(crate) fn each(block: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) {
    let Some((count, rest)) = number(block) else { return };
    let Some((mut lengths, mut texts)) =
        count.checked_mul(2 * NUMBER).and_then(|len| rest.split_at_checked(len))
    else {
        return;
    };
    while let Some((name_len, rest)) = number(lengths)
        && let Some((value_len, rest)) = number(rest)
        && let Some((name, text)) = text(texts, name_len)
        && let Some((value, text)) = self::text(text, value_len)
    {
        each(name, value);
        (lengths, texts) = (rest, text);
    }
}

/// A number, and what follows it.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<NUMBER>()?;
    Some((usize::try_from(u32::from_le_bytes(*number)).ok()?, rest))
}

/// A text of `len` bytes, and what follows the zero after it.
fn text(bytes: &[u8], len: usize) -> Option<(&[u8], &[u8])> {
    let (text, rest) = bytes.split_at_checked(len)?;
    Some((text, rest.get(1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(block: &[u8]) -> Vec<(String, String)> {
        let text =
            |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the tests' lines are text");
        let mut lines = Vec::new();
        each(block, &mut |name, value| lines.push((text(name), text(value))));
        lines
    }

    const BLOCK: &[u8] = b"\x02\0\0\0\x05\0\0\0\x01\0\0\0\x01\0\0\0\0\0\0\0:path\0/\0a\0\0";

    #[test]
    fn every_line_is_shown_in_order() {
        let expected = [(":path", "/"), ("a", "")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(read(BLOCK), expected);
    }

    #[test]
    fn a_block_that_is_cut_shows_its_whole_lines() {
        for (len, lines) in [(0, 0), (3, 0), (4, 0), (19, 0), (27, 0), (28, 1), (30, 1), (31, 2)] {
            assert_eq!(read(&BLOCK[..len]).len(), lines, "of {len} bytes");
        }
    }

    #[test]
    fn lengths_beyond_the_block_show_nothing() {
        for block in [b"\xff\xff\xff\xff".as_slice(), b"\x01\0\0\0\xff\xff\xff\xff\0\0\0\0:path\0"]
        {
            assert_eq!(read(block), []);
        }
    }
}
