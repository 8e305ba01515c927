//! W3C Trace Context: the id of a trace, and Onus's token as a member of `tracestate`
//! (protocol §5).

use http::{HeaderMap, HeaderValue};

use crate::correlator::Token;
use crate::wire::{TRACEPARENT, TRACESTATE, line};

/// The trace id of a valid `traceparent`.
#[must_use]
pub fn trace_id(headers: &HeaderMap) -> Option<[u8; 16]> {
    let lines = headers.get_all(&TRACEPARENT).iter();
    hex(trace_id_text(lines.map(HeaderValue::as_bytes))?)
}

/// The trace id of a request, as it is written in its `traceparent`: 32 lower-case hexadecimal digits.
/// `lines` are those of that header. Several are none, as the standard says.
#[must_use]
pub fn trace_id_text<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Option<&'a [u8]> {
    let text = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    // Whole arrays, whose bytes are looked at many at a time.
    let (version, rest) = field::<2>(text)?;
    let (trace_id, rest) = field::<32>(rest)?;
    let (parent_id, rest) = field::<16>(rest)?;
    let (flags, rest) = rest.split_first_chunk::<2>()?;
    // Later versions may add fields.
    let ends = rest.is_empty() || (version != b"00" && rest[0] == b'-');
    let digits =
        are_digits(version) & are_digits(trace_id) & are_digits(parent_id) & are_digits(flags);
    let nothing = *trace_id == [b'0'; 32] || *parent_id == [b'0'; 16];
    (ends && digits && version != b"ff" && !nothing).then_some(trace_id.as_slice())
}

/// A field of a `traceparent` and what follows the dash behind it.
fn field<const N: usize>(text: &[u8]) -> Option<(&[u8; N], &[u8])> {
    let (field, rest) = text.split_first_chunk()?;
    Some((field, rest.strip_prefix(b"-")?))
}

/// The token that a request carries, if its text is one.
#[must_use]
pub fn read_token(headers: &HeaderMap) -> Option<Token> {
    own_members(headers).next().and_then(Token::parse)
}

/// Puts the token in front of the other members, in place of one that is there, as from another
/// host. The standard's limits of 32 members and 512 characters hold: members of more than 128
/// characters go first, then the last ones.
pub fn insert_token(headers: &mut HeaderMap, token: Token) {
    let mut text = member(token).to_vec();
    // Most requests have no other member.
    if line(headers, &TRACESTATE).is_some() {
        let kept = kept(headers, text.len());
        let others = members(headers).filter(|member| value_of(member).is_none());
        for (member, _) in others.zip(kept).filter(|(_, kept)| *kept) {
            text.push(b',');
            text.extend_from_slice(member);
        }
    }
    // Pieces of header values with a comma between them are a header value.
    if let Ok(mut value) = HeaderValue::try_from(text) {
        // No two requests have the same value: HPACK is not to keep it, nor to compare it with those
        // that it keeps.
        value.set_sensitive(true);
        let _ = headers.try_insert(&TRACESTATE, value);
    }
}

/// The token as a member: all of `tracestate` where a request has no other.
#[inline]
#[must_use]
pub fn member(token: Token) -> [u8; MEMBER_LEN] {
    let mut member = [b'='; MEMBER_LEN];
    member[..KEY.len()].copy_from_slice(KEY.as_bytes());
    member[KEY.len() + 1..].copy_from_slice(&token.text());
    member
}

/// The length of the token as a member.
pub const MEMBER_LEN: usize = KEY.len() + 1 + Token::TEXT_LEN;

/// Removes the token before a request leaves the host; the other members stay as they are.
pub fn remove_token(headers: &mut HeaderMap) {
    if own_members(headers).next().is_none() {
        return;
    }
    let others = members(headers).filter(|member| value_of(member).is_none());
    let text = others.collect::<Vec<_>>().join(&b',');
    match HeaderValue::try_from(text) {
        Ok(value) if !value.is_empty() => headers.insert(&TRACESTATE, value),
        Ok(_) | Err(_) => headers.remove(&TRACESTATE),
    };
}

/// The key of Onus's member.
const KEY: &str = "onus";

const MEMBERS_MAX: usize = 32;
const LENGTH_MAX: usize = 512;
/// Longer members are dropped first.
const MEMBER_LONG: usize = 128;

/// Which of the others stay beside a first member of `own_len` characters.
fn kept(headers: &HeaderMap, own_len: usize) -> Vec<bool> {
    let lens: Vec<_> =
        members(headers).filter(|member| value_of(member).is_none()).map(<[u8]>::len).collect();
    let mut kept = vec![true; lens.len()];
    let mut members = 1 + lens.len();
    let mut length = own_len + lens.iter().map(|len| 1 + len).sum::<usize>();
    let longest_first = |long: bool| {
        let lens = lens.iter().enumerate().rev();
        lens.filter(move |(_, len)| (**len > MEMBER_LONG) == long)
    };
    for (at, len) in longest_first(true).chain(longest_first(false)) {
        if members <= MEMBERS_MAX && length <= LENGTH_MAX {
            break;
        }
        kept[at] = false;
        members -= 1;
        length -= 1 + len;
    }
    kept
}

/// The values of the members that are Onus's.
fn own_members(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    members(headers).filter_map(value_of)
}

fn value_of(member: &[u8]) -> Option<&[u8]> {
    member.strip_prefix(KEY.as_bytes())?.strip_prefix(b"=")
}

/// The members of all lines, in order, without the empty ones.
fn members(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = headers.get_all(&TRACESTATE).iter();
    let members = lines.flat_map(|line| line.as_bytes().split(|&byte| byte == b','));
    members.map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// Whether all are lower-case hexadecimal digits. All are looked at, without a branch for each.
fn are_digits<const N: usize>(text: &[u8; N]) -> bool {
    text.iter().fold(true, |all, byte| all & matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Lower-case hexadecimal digits, two for each byte.
fn hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_chunks::<2>() else { return None };
    let mut bytes = [0; N];
    if pairs.len() != N {
        return None;
    }
    for (byte, &[high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn token() -> Token {
        Token::parse(TOKEN.as_bytes()).unwrap()
    }

    fn block(name: &http::HeaderName, lines: &[&str]) -> HeaderMap {
        let value = |text: &&str| HeaderValue::from_str(text).unwrap();
        lines.iter().map(|line| (name.clone(), value(line))).collect()
    }

    fn lines(headers: &HeaderMap) -> Vec<&str> {
        headers.get_all(&TRACESTATE).iter().map(|line| line.to_str().unwrap()).collect()
    }

    #[test]
    fn trace_id_of_a_valid_traceparent() {
        fn check(lines: &[&str], valid: bool) {
            const ID: [u8; 16] = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes();
            let found = trace_id(&block(&TRACEPARENT, lines));
            assert_eq!(found, valid.then_some(ID), "{lines:?}");
        }
        const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        check(&[], false);
        check(&[VALID], true);
        check(&[VALID, VALID], false);
        for flags in ["00", "ff"] {
            check(&[&format!("{}{flags}", &VALID[..53])], true);
        }
        check(&[&VALID.replacen("00", "01", 1)], true);
        check(&[&format!("{}-more", VALID.replacen("00", "cc", 1))], true);
        for wrong in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}0"),
            &format!("{VALID}-more"),
            &format!(" {VALID}"),
            &VALID.to_uppercase(),
            &VALID.replacen("00", "ff", 1),
            &VALID.replacen("00", "0g", 1),
            &VALID.replace('-', "_"),
            &VALID.replacen("00-", "000", 1),
            &format!("{}more", VALID.replacen("00", "cc", 1)),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
        ] {
            check(&[wrong], false);
        }
    }

    #[test]
    fn token_in_front_and_out_again() {
        // [correlate-2] [correlate-3]
        fn check(before: &[&str], others: &str) {
            let mut headers = block(&TRACESTATE, before);
            insert_token(&mut headers, token());
            let expected = format!("onus={TOKEN},{others}");
            assert_eq!(lines(&headers), [expected.trim_end_matches(',')], "{before:?}");
            assert_eq!(read_token(&headers), Some(token()));
            assert!(headers[&TRACESTATE].is_sensitive(), "HPACK would keep it");
            remove_token(&mut headers);
            let expected: &[&str] = if others.is_empty() { &[] } else { &[others] };
            assert_eq!(lines(&headers), expected, "{before:?}");
            assert_eq!(read_token(&headers), None);
        }
        check(&[], "");
        check(&[""], "");
        check(&[" , ,"], "");
        check(&["a=1"], "a=1");
        check(&["a=1, b=2 ,,c=3"], "a=1,b=2,c=3");
        check(&["a=1", "b=2"], "a=1,b=2");
        check(&["onus=fedcba9876543210"], "");
        check(&["a=1,onus=x,b=2", "onus=y"], "a=1,b=2");
        check(&["onus2=1,t@onus=2,onus", "xonus=3"], "onus2=1,t@onus=2,onus,xonus=3");
    }

    #[test]
    fn state_without_a_token_stays_as_it_is() {
        for before in [&[][..], &["a=1, b=2"], &["a=1 ", "", ",b=2"]] {
            let mut headers = block(&TRACESTATE, before);
            remove_token(&mut headers);
            assert_eq!(lines(&headers), before);
        }
    }

    #[test]
    fn a_token_is_read_only_as_it_is_written() {
        fn check(line: &str, found: bool) {
            let read = read_token(&block(&TRACESTATE, &[line]));
            assert_eq!(read, found.then(token), "{line}");
        }
        check(&format!("onus={TOKEN}"), true);
        check(&format!("a=1,\tonus={TOKEN} ,b=2"), true);
        check(&format!("onus={TOKEN}0"), false);
        check(&format!("ONUS={TOKEN}"), false);
        check(&format!("onus = {TOKEN}"), false);
        check("onus=", false);
    }

    #[test]
    fn limits_hold_and_the_token_stays() {
        fn check(before: &[String], after: &[String]) {
            let mut headers = block(&TRACESTATE, &[&before.join(",")]);
            insert_token(&mut headers, token());
            let own = format!("onus={TOKEN}");
            let expected = [&[own][..], after].concat().join(",");
            assert!(expected.len() <= 512);
            assert_eq!(lines(&headers), [expected]);
        }
        let short: Vec<_> = (0..40).map(|n| format!("k{n}=1")).collect();
        check(&short[..31], &short[..31]);
        check(&short[..32], &short[..31]);
        check(&short, &short[..31]);
        let member = |n: usize, len: usize| format!("k{n}={}", "x".repeat(len - 3));
        // 21 characters of the token's and 491 others with their commas.
        let full = [member(0, 97), member(1, 97), member(2, 97), member(3, 97), member(4, 98)];
        check(&full, &full);
        let over = [&full[..4], &[member(4, 99)]].concat();
        check(&over, &full[..4]);
        let one_more = [&full[..], &["z=1".to_owned()]].concat();
        check(&one_more, &full);
        let long = [member(0, 129), member(1, 300), member(2, 60), member(3, 60)];
        check(&long, &[&long[..1], &long[2..]].concat());
        let longer = [member(0, 300), member(1, 100), member(2, 128), member(3, 129)];
        check(&longer, &longer[1..3]);
    }

    proptest! {
        #[test]
        fn any_state_gets_the_token_and_loses_it(text in "[a-z=, \tonus\u{e9}]{0,60}", fill in "(k=v,){0,40}") {
            let Ok(line) = HeaderValue::from_bytes(format!("{text},{fill}").as_bytes()) else {
                return Ok(());
            };
            let mut headers = HeaderMap::new();
            headers.insert(&TRACESTATE, line);
            insert_token(&mut headers, token());
            prop_assert_eq!(read_token(&headers), Some(token()));
            prop_assert!(headers[&TRACESTATE].len() <= LENGTH_MAX);
            remove_token(&mut headers);
            prop_assert_eq!(own_members(&headers).count(), 0);
        }

        #[test]
        fn no_traceparent_panics(text in prop::collection::vec(any::<u8>(), 0..70)) {
            if let Ok(line) = HeaderValue::from_bytes(&text) {
                let mut headers = HeaderMap::new();
                headers.insert(&TRACEPARENT, line);
                let _ = trace_id(&headers);
            }
        }
    }
}
