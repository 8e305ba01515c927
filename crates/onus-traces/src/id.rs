//! Trace and span ids of every spelling as numbers.

use std::hash::Hasher;

/// The id of a trace, or none where the text holds none.
///
/// Hex digits and base64 of the same bytes are the same id, and so is one without its leading
/// zeros. Other texts are hashed. A text of fewer than [`GLOBAL`] characters was numbered by hand,
/// not drawn at random: it means another trace in each file, so the file's number goes in.
pub(crate) fn trace_id(text: &[u8], file: u16) -> Option<u128> {
    if text.is_empty() {
        return None;
    }
    if text.len() < GLOBAL {
        return Some(hash128(text) ^ of_file(file));
    }
    match number(text, 32) {
        Some(0) => None,
        Some(id) => Some(id),
        None => Some(hash128(text)),
    }
}

/// The id of a trace as lists give it that belong to no file, as [`trace_id`] would for a file with
/// the number `file`, when it was numbered by hand, is `listed_trace_id(text) ^ of_file(file)`.
pub(crate) fn listed_trace_id(text: &[u8]) -> Option<u128> {
    if text.len() < GLOBAL && !text.is_empty() {
        return Some(hash128(text));
    }
    trace_id(text, 0)
}

/// What makes the hand-numbered traces of a file different from those of others.
pub(crate) fn of_file(file: u16) -> u128 {
    // An odd multiplier, so that no two files have the same.
    (u128::from(file) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

/// The id of a span; zero where the text holds none.
pub(crate) fn span_id(text: &[u8]) -> u64 {
    match number(text, 16) {
        Some(id) => id as u64,
        None if text.is_empty() => 0,
        None => hash(text, 2),
    }
}

/// The id that `bytes` are, as protobuf carries it; none where they are all zero or too many.
pub(crate) fn of_bytes(bytes: &[u8]) -> Option<u128> {
    let fits = bytes.len() <= 16;
    let id = bytes.iter().fold(0, |id, &byte| id << 8 | u128::from(byte));
    (fits && id != 0).then_some(id)
}

/// Random ids have 16 or 32 digits, and leading zeros that a writer leaves out are few: one id in
/// four billion has eight.
const GLOBAL: usize = 9;

fn number(text: &[u8], digits: usize) -> Option<u128> {
    hex(text, digits).or_else(|| base64(text, digits / 2))
}

fn hex(text: &[u8], digits: usize) -> Option<u128> {
    if text.is_empty() || text.len() > digits {
        return None;
    }
    let mut number = 0;
    for &byte in text {
        let digit = HEX[byte as usize];
        if digit == NONE {
            return None;
        }
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

/// Base64 of exactly `length` bytes, with or without its padding.
fn base64(text: &[u8], length: usize) -> Option<u128> {
    let end = text.iter().position(|&byte| byte == b'=').unwrap_or(text.len());
    let (digits, padding) = text.split_at(end);
    let wanted = (length * 8).div_ceil(6);
    if digits.len() != wanted || padding.len() > 2 || padding.iter().any(|&byte| byte != b'=') {
        return None;
    }
    let mut number = 0_u128;
    let mut bits = 0;
    for &byte in digits {
        let digit = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        // The last digit has bits to spare.
        let take = (length * 8 - bits).min(6);
        number = number << take | u128::from(digit >> (6 - take));
        bits += take;
    }
    Some(number)
}

fn hash128(text: &[u8]) -> u128 {
    u128::from(hash(text, 0)) << 64 | u128::from(hash(text, 1))
}

/// A hash that is the same in every run, so that results are; never zero.
fn hash(text: &[u8], half: u8) -> u64 {
    // The standard hasher without a key: an author of a dump who finds collisions merges spans of
    // that dump.
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write_u8(half);
    hasher.write(text);
    hasher.finish().max(1)
}

const NONE: u8 = u8::MAX;

const HEX: [u8; 256] = {
    let mut table = [NONE; 256];
    let mut digit = 0;
    while digit < 16 {
        let lower = b"0123456789abcdef"[digit];
        table[lower as usize] = digit as u8;
        table[lower.to_ascii_uppercase() as usize] = digit as u8;
        digit += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_id_are_one() {
        let id = Some(0x23d7_8e75_5c13_e871_eb8b_5a24_9639_9093);
        for text in ["23d78e755c13e871eb8b5a2496399093", "23D78E755C13E871EB8B5A2496399093"] {
            assert_eq!(trace_id(text.as_bytes(), 0), id, "{text}");
        }
        for text in ["I9eOdVwT6HHri1okljmQkw==", "I9eOdVwT6HHri1okljmQkw"] {
            assert_eq!(trace_id(text.as_bytes(), 7), id, "{text}");
        }
        let padded = trace_id(b"0000000000000000000c34b2d4a60990", 0);
        assert_eq!(trace_id(b"c34b2d4a60990", 3), padded);
        assert_eq!(span_id(b"JvGMttFf5MM="), 0x26f1_8cb6_d15f_e4c3);
        assert_eq!(span_id(b"26f18cb6d15fe4c3"), 0x26f1_8cb6_d15f_e4c3);
    }

    #[test]
    fn no_id_is_none() {
        for bytes in [&[][..], &[0; 16], &[1; 17]] {
            assert_eq!(of_bytes(bytes), None, "{bytes:?}");
        }
        assert_eq!(of_bytes(&[0x26, 0xf1]), Some(0x26f1));
        for text in ["", "000000000000", "00000000000000000000000000000000"] {
            assert_eq!(trace_id(text.as_bytes(), 0), None, "{text}");
        }
        for text in ["", "0", "0000000000000000"] {
            assert_eq!(span_id(text.as_bytes()), 0, "{text}");
        }
    }

    #[test]
    fn hand_numbered_traces_belong_to_their_file() {
        assert_eq!(trace_id(b"A", 1), trace_id(b"A", 1));
        assert_ne!(trace_id(b"A", 1), trace_id(b"A", 2));
        assert_ne!(trace_id(b"A", 1), trace_id(b"B", 1));
        for file in [0, 1, 65_535] {
            let listed = listed_trace_id(b"A").map(|id| id ^ of_file(file));
            assert_eq!(trace_id(b"A", file), listed);
        }
        assert_eq!(listed_trace_id(b"c34b2d4a60990"), trace_id(b"c34b2d4a60990", 9));
        assert_eq!(trace_id(b"trace-number-1", 1), trace_id(b"trace-number-1", 2));
        assert_ne!(span_id(b"root"), span_id(b"leaf"));
    }
}
