//! Structured Fields (RFC 9651): one Item, parsed strictly and without an allocation.

/// The value of an Item or of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BareItem<'a> {
    Token(&'a [u8]),
    /// What stands between the quotes; a backslash escapes the byte after it.
    String(&'a [u8]),
    Integer(i64),
    /// A well-formed value of a type that no field of Onus has.
    Other,
}

/// The parameters of an Item, from the first to the last.
pub(super) struct Parameters<'a>(&'a [u8]);

/// The text is no Item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// Parses the value of an Item. The text is one only if [`Parameters::next`] reaches the end.
pub(super) fn item(text: &[u8]) -> Result<(BareItem<'_>, Parameters<'_>), Malformed> {
    let mut input = text;
    skip_spaces(&mut input);
    let value = bare_item(&mut input).ok_or(Malformed)?;
    Ok((value, Parameters(input)))
}

/// The integer that the whole text is, whatever its parameters.
pub(super) fn integer(text: &[u8]) -> Option<i64> {
    let (value, mut parameters) = item(text).ok()?;
    while parameters.next().ok()?.is_some() {}
    match value {
        BareItem::Integer(integer) => Some(integer),
        BareItem::Token(_) | BareItem::String(_) | BareItem::Other => None,
    }
}

impl<'a> Parameters<'a> {
    /// The next parameter; `None` at the end of the text. Of equal keys the last one counts.
    pub(super) fn next(&mut self) -> Result<Option<(&'a [u8], BareItem<'a>)>, Malformed> {
        let input = &mut self.0;
        if !take(input, b';') {
            skip_spaces(input);
            return if input.is_empty() { Ok(None) } else { Err(Malformed) };
        }
        skip_spaces(input);
        let key = key(input).ok_or(Malformed)?;
        // A key alone is a Boolean that is true.
        let value =
            if take(input, b'=') { bare_item(input).ok_or(Malformed)? } else { BareItem::Other };
        Ok(Some((key, value)))
    }
}

fn bare_item<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    match input.first()? {
        b'-' | b'0'..=b'9' => number(input),
        b'"' => string(input).map(BareItem::String),
        b'*' | b'A'..=b'Z' | b'a'..=b'z' => Some(BareItem::Token(take_while(input, in_token))),
        b':' => byte_sequence(input),
        b'?' => boolean(input),
        b'@' => date(input),
        b'%' => display_string(input),
        _ => None,
    }
}

fn number<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    let negative = take(input, b'-');
    let whole = take_while(input, |byte| byte.is_ascii_digit());
    if whole.is_empty() {
        return None;
    }
    if take(input, b'.') {
        let fraction = take_while(input, |byte| byte.is_ascii_digit());
        return (whole.len() <= 12 && (1..=3).contains(&fraction.len())).then_some(BareItem::Other);
    }
    if whole.len() > 15 {
        return None;
    }
    let value = whole.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
    Some(BareItem::Integer(if negative { -value } else { value }))
}

fn string<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let text = input.strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => break,
            b'\\' => {
                if !matches!(text.get(at + 1)?, b'"' | b'\\') {
                    return None;
                }
                at += 2;
            }
            b' '..=b'~' => at += 1,
            _ => return None,
        }
    }
    *input = &text[at + 1..];
    Some(&text[..at])
}

fn byte_sequence<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    take(input, b':');
    let data =
        take_while(input, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'));
    let padding = take_while(input, |byte| byte == b'=');
    // Padding may be left out; what is there must be that of base64.
    let padded =
        padding.is_empty() || (padding.len() <= 2 && (data.len() + padding.len()) % 4 == 0);
    (data.len() % 4 != 1 && padded && take(input, b':')).then_some(BareItem::Other)
}

fn boolean<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    take(input, b'?');
    (take(input, b'0') || take(input, b'1')).then_some(BareItem::Other)
}

fn date<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    take(input, b'@');
    match number(input)? {
        BareItem::Integer(_) => Some(BareItem::Other),
        BareItem::Token(_) | BareItem::String(_) | BareItem::Other => None,
    }
}

/// `%"…"`: printable ASCII in which `%` and two lower-case digits stand for a byte of UTF-8.
fn display_string<'a>(input: &mut &'a [u8]) -> Option<BareItem<'a>> {
    let mut text = input.strip_prefix(b"%\"")?;
    let mut utf8 = Utf8::default();
    loop {
        let (&byte, rest) = text.split_first()?;
        text = rest;
        match byte {
            b'"' => break,
            b'%' => {
                let (&[high, low], rest) = text.split_first_chunk()?;
                text = rest;
                utf8.push(hex_digit(high)? << 4 | hex_digit(low)?)?;
            }
            b' '..=b'~' => utf8.push(byte)?,
            _ => return None,
        }
    }
    *input = text;
    utf8.is_complete().then_some(BareItem::Other)
}

/// Checks bytes for being UTF-8 one after the other.
#[derive(Default)]
struct Utf8 {
    /// The bytes of a character that is not complete.
    part: [u8; 4],
    len: usize,
}

impl Utf8 {
    fn push(&mut self, byte: u8) -> Option<()> {
        *self.part.get_mut(self.len)? = byte;
        self.len += 1;
        match std::str::from_utf8(&self.part[..self.len]) {
            Ok(_) => self.len = 0,
            // No length: more bytes may complete the character.
            Err(error) if error.error_len().is_none() => {}
            Err(_) => return None,
        }
        Some(())
    }

    fn is_complete(&self) -> bool {
        self.len == 0
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

fn key<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    if !matches!(input.first()?, b'*' | b'a'..=b'z') {
        return None;
    }
    Some(take_while(
        input,
        |byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'.' | b'*'),
    ))
}

fn in_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}

fn take(input: &mut &[u8], byte: u8) -> bool {
    match input.split_first() {
        Some((&first, rest)) if first == byte => {
            *input = rest;
            true
        }
        Some(_) | None => false,
    }
}

fn take_while<'a>(input: &mut &'a [u8], belongs: impl Fn(u8) -> bool) -> &'a [u8] {
    let end = input.iter().position(|&byte| !belongs(byte)).unwrap_or(input.len());
    let (taken, rest) = input.split_at(end);
    *input = rest;
    taken
}

fn skip_spaces(input: &mut &[u8]) {
    take_while(input, |byte| byte == b' ');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Parsed<'a> = (BareItem<'a>, Vec<(&'a [u8], BareItem<'a>)>);

    fn parse(text: &[u8]) -> Option<Parsed<'_>> {
        let (value, mut parameters) = item(text).ok()?;
        let mut found = Vec::new();
        while let Some(parameter) = parameters.next().ok()? {
            found.push(parameter);
        }
        Some((value, found))
    }

    fn check(text: &str, expected: Option<BareItem<'_>>) {
        let value = parse(text.as_bytes()).map(|(value, _)| value);
        assert_eq!(value, expected, "{text}");
        // A parameter's value has the same grammar, and stands before other text.
        let inside = format!("a;b={text};c");
        let value = parse(inside.as_bytes()).map(|(_, parameters)| parameters[0].1);
        // Spaces around an Item are nothing, inside it they are an error.
        let expected = expected.filter(|_| text.trim() == text);
        assert_eq!(value, expected, "{inside}");
    }

    #[test]
    fn values_of_every_type() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("42", 42),
            ("-42", -42),
            ("007", 7),
            ("  7  ", 7),
            ("999999999999999", 999_999_999_999_999),
            ("-999999999999999", -999_999_999_999_999),
        ] {
            check(text, Some(BareItem::Integer(value)));
        }
        for text in ["a", "A1", "*a", "a:b/c", "a!#$%&'*+-.^_`|~", "claimed"] {
            check(text, Some(BareItem::Token(text.as_bytes())));
        }
        for (text, value) in
            [(r#""""#, ""), (r#""a b""#, "a b"), (r#""\"\\""#, r#"\"\\"#), (r#"";x=1""#, ";x=1")]
        {
            check(text, Some(BareItem::String(value.as_bytes())));
        }
        let decimals = "1.5 -1.5 0.123 123456789012.1";
        let bytes = ":: :aGk=: :aGk: :YQ==: :YQ: :aGVs:";
        let other = "?0 ?1 @0 @-1659578233";
        let display = r#"%"" %"ab" %"f%c3%bc" %"%e2%82%ac" %"%f0%9f%92%a9" %"%22""#;
        for text in [decimals, bytes, other, display].into_iter().flat_map(str::split_whitespace) {
            check(text, Some(BareItem::Other));
        }
        check(r#"%"a b""#, Some(BareItem::Other));
    }

    #[test]
    fn what_is_no_value() {
        for text in ["", " ", "a b", "\ta", "a\t", "\"\t\"", "\"\u{fc}\"", "%\"\u{fc}\"", "\u{fc}"]
        {
            check(text, None);
        }
        let numbers = "- --1 +1 1. 1.2345 .5 1234567890123.1 1000000000000000 1e3 1.5.5";
        let strings = r#"" "a "\a" "\" !a /a a" a,b 'a' {} (a)"#;
        let bytes = ": :a :a: :=: :a=b: :YQ=: :YQ===: :aGVs=: :a_b-:";
        let others = "? ?2 ?01 @ @a @1.5";
        let display = r#"% %a %" %"% %"%4" %"%C3%BC" %"%c3" %"%c3a" %"%ff" %"%80""#;
        let all = [numbers, strings, bytes, others, display];
        for text in all.into_iter().flat_map(str::split_whitespace) {
            check(text, None);
        }
    }

    #[test]
    fn parameters_with_and_without_values() {
        fn check(text: &str, expected: Option<&[(&str, i64)]>) {
            let found = parse(text.as_bytes()).map(|(_, parameters)| {
                let number = |value| match value {
                    BareItem::Integer(number) => number,
                    BareItem::Token(_) | BareItem::String(_) | BareItem::Other => -1,
                };
                let text = |key| std::str::from_utf8(key).unwrap();
                parameters.into_iter().map(|(key, v)| (text(key), number(v))).collect::<Vec<_>>()
            });
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        check("a", Some(&[]));
        check("a;b", Some(&[("b", -1)]));
        check("a;b;c=2", Some(&[("b", -1), ("c", 2)]));
        check("a;   b=1;  c=2", Some(&[("b", 1), ("c", 2)]));
        check("  a;b=1  ", Some(&[("b", 1)]));
        check("a;b=1;b=2", Some(&[("b", 1), ("b", 2)]));
        check("a;*b.c_d-e1=1", Some(&[("*b.c_d-e1", 1)]));
        for text in [
            "a;", "a; ", "a;;b", "a ;b", "a;b =1", "a;b= 1", "a;b=", "a;B=1", "a;1=1", "a;-b=1",
            "a;b=1 c", "a;b=1,c", "a;\tb", "a;b=(1)", "a;b=1;",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse(&text);
        }

        #[test]
        fn no_text_of_the_grammars_own_bytes_panics(text in r#"[a*1;=. "\\:?@%(),-]{0,40}"#) {
            let _ = parse(text.as_bytes());
        }

        #[test]
        fn strings_are_checked_as_utf8(text in prop::collection::vec(any::<u8>(), 0..8)) {
            let digits: String = text.iter().map(|byte| format!("%{byte:02x}")).collect();
            let valid = parse(format!("%\"{digits}\"").as_bytes()).is_some();
            prop_assert_eq!(valid, std::str::from_utf8(&text).is_ok());
        }
    }
}
