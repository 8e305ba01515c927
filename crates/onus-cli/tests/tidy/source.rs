//! Rust text told apart into code, comments and literals, and which of its lines only tests use.
//!
//! A scanner, not a parser: it knows where literals and comments begin and end, which is all
//! that the rules ask.

use std::iter;
use std::ops::Range;

/// What a byte belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Code,
    /// Any comment, documentation included.
    Comment,
    /// A string or character literal with its quotes.
    Literal,
}

/// One Rust file, scanned.
pub(crate) struct Source<'a> {
    text: &'a str,
    kinds: Vec<Kind>,
    tests: Vec<Range<usize>>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let kinds = scan(text.as_bytes());
        let mut source = Self { text, kinds, tests: Vec::new() };
        source.tests = test_items(&source.only(&[Kind::Code]));
        source
    }

    /// The text with every byte of another kind replaced by a space; lines keep their places.
    pub(crate) fn only(&self, kinds: &[Kind]) -> String {
        self.filtered(|at| kinds.contains(&self.kinds[at]))
    }

    /// Comments and literals that only tests see.
    pub(crate) fn test_prose(&self) -> String {
        self.filtered(|at| self.kinds[at] != Kind::Code && self.in_test(at))
    }

    /// The lines of code of the product: no blank, comment, documentation or test lines.
    pub(crate) fn lines_of_code(&self) -> usize {
        let code = self.filtered(|at| self.kinds[at] != Kind::Comment && !self.in_test(at));
        code.lines().filter(|line| !line.trim().is_empty()).count()
    }

    /// Names of the modules that live in files of their own and that only tests use.
    pub(crate) fn test_modules(&self) -> Vec<&'a str> {
        let declared = |item: &Range<usize>| {
            let item = self.text[item.clone()].strip_suffix(';')?;
            let (_, name) = item.rsplit_once("mod ")?;
            Some(name.trim())
        };
        self.tests.iter().filter_map(declared).collect()
    }

    fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|item| item.contains(&at))
    }

    fn filtered(&self, keep: impl Fn(usize) -> bool) -> String {
        let keep = |(at, byte)| match byte {
            b'\n' => b'\n',
            _ if keep(at) => byte,
            _ => b' ',
        };
        let bytes = self.text.bytes().enumerate().map(keep).collect();
        String::from_utf8(bytes).expect("kinds change only between characters")
    }
}

fn scan(text: &[u8]) -> Vec<Kind> {
    let mut kinds = Vec::with_capacity(text.len());
    while kinds.len() < text.len() {
        let (kind, length) = token(text, kinds.len());
        kinds.resize((kinds.len() + length).min(text.len()), kind);
    }
    kinds
}

/// Kind and length of what starts at `at`.
fn token(text: &[u8], at: usize) -> (Kind, usize) {
    let rest = &text[at..];
    if rest.starts_with(b"//") {
        return (Kind::Comment, until(rest, b"\n", 0));
    }
    if rest.starts_with(b"/*") {
        return (Kind::Comment, block_comment(rest));
    }
    if rest[0] == b'"' {
        return (Kind::Literal, quoted(rest, b'"'));
    }
    if rest[0] == b'\'' && is_char_literal(rest) {
        return (Kind::Literal, quoted(rest, b'\''));
    }
    let in_word = at > 0 && is_word(text[at - 1]);
    match raw_string(rest) {
        Some(length) if !in_word => (Kind::Literal, length),
        _ => (Kind::Code, 1),
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < rest.len() {
        let step = &rest[at..];
        if step.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if step.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                break;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// Length of a literal that starts with `quote` and in which a backslash escapes.
fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    at + 1
}

/// Tells `'a'` from the lifetime `'a`.
fn is_char_literal(rest: &[u8]) -> bool {
    match rest.get(1) {
        Some(b'\\') => true,
        Some(first) if first.is_ascii() => rest.get(2) == Some(&b'\''),
        // A character of several bytes is no lifetime in this checkout.
        Some(_) => true,
        None => false,
    }
}

/// Length of `r"…"`, `r#"…"#` and their byte and C forms.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take_while(|byte| b"brc".contains(byte)).count();
    let after = rest[..prefix].ends_with(b"r").then(|| &rest[prefix..])?;
    let hashes = after.iter().take_while(|byte| **byte == b'#').count();
    if after.get(hashes) != Some(&b'"') {
        return None;
    }
    let mut end = vec![b'"'];
    end.resize(hashes + 1, b'#');
    Some(until(rest, &end, prefix + hashes + 1) + end.len())
}

/// Offset of the first `end` at or after `from`, or the length.
fn until(rest: &[u8], end: &[u8], from: usize) -> usize {
    let found = rest[from..].windows(end.len()).position(|part| part == end);
    found.map_or(rest.len(), |found| from + found)
}

fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

/// The items under `#[cfg(test)]` and the like; `code` has no comments and literals.
fn test_items(code: &str) -> Vec<Range<usize>> {
    if code.trim_start().starts_with("#![cfg(") && is_test_only(code.trim_start()) {
        return iter::once(0..code.len()).collect();
    }
    code.match_indices("#[cfg(")
        .filter(|(start, _)| is_test_only(&code[*start..]))
        .map(|(start, _)| start..item_end(code, start))
        .collect()
}

/// Whether the attribute at the start of `code` holds in test builds only.
fn is_test_only(code: &str) -> bool {
    let attribute: String = code.chars().take_while(|c| *c != ']').collect();
    let condition = attribute.replace([' ', '\n'], "");
    let condition = condition.trim_start_matches(['#', '!', '[']);
    let parts = || condition.split(['(', ')', ',']);
    condition == "cfg(test)"
        || condition.starts_with("cfg(all(")
            && parts().any(|part| part == "test")
            && !condition.contains("not(test)")
}

/// Where the item that an attribute at `start` belongs to ends.
fn item_end(code: &str, start: usize) -> usize {
    let mut braces = 0_i32;
    let mut brackets = 0_i32;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => brackets += 1,
            b')' | b']' => brackets -= 1,
            b'{' => braces += 1,
            b'}' => braces -= 1,
            _ => {}
        }
        let item_ends = matches!(byte, b';' | b'}') && braces == 0 && brackets == 0;
        if item_ends {
            return at + 1;
        }
    }
    code.len()
}

#[test]
fn kinds() {
    fn check(text: &str, code: &str, comment: &str) {
        let source = Source::new(text);
        assert_eq!(source.only(&[Kind::Code]).trim(), code, "code of {text}");
        let comments = source.only(&[Kind::Comment]);
        assert_eq!(comments.trim(), comment, "comments of {text}");
    }
    check("a // b", "a", "// b");
    check("a /* b /* c */ d */ e", "a                   e", "/* b /* c */ d */");
    check(r#"f("// no") // yes"#, "f(       )", "// yes");
    check(r#"f("\"// no") // yes"#, "f(         )", "// yes");
    check(r##"f(r#"" // no"#) // yes"##, "f(            )", "// yes");
    check(r#"f(br"\") // yes"#, "f(     )", "// yes");
    check(r#"for"x" // y"#, "for", "// y");
    check("'\"' // a", "", "// a");
    check(r"'\'' // a", "", "// a");
    check("fn f<'a>(x: &'a str) {} // é", "fn f<'a>(x: &'a str) {}", "// é");
    check("'é'; x", "; x", "");
}

#[test]
fn lines_of_code() {
    fn check(text: &str, lines: usize) {
        assert_eq!(Source::new(text).lines_of_code(), lines, "{text}");
    }
    check("", 0);
    check("//! Docs.\n\n/// More.\nfn f() {\n    // Why.\n    g()\n}\n", 3);
    check("const T: &str = \"\n// text\n\";\n", 3);
    check("fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { {} }\n}\nfn h() {}\n", 2);
    check("#[cfg(test)]\nfn f(x: [u8; 3]) {\n}\n", 0);
    check("#[cfg(all(test, not(loom)))]\nmod tests {\n}\n", 0);
    check("#[cfg(not(test))]\nmod a {\n}\n", 3);
    check("#[cfg(all(loom, not(test)))]\nmod a {\n}\n", 3);
    check("#[cfg(any(test, fuzzing))]\nmod a {\n}\n", 3);
    check("#![cfg(test)]\nfn f() {}\n", 0);
}

#[test]
fn test_modules() {
    fn check(text: &str, modules: &[&str]) {
        assert_eq!(Source::new(text).test_modules(), modules, "{text}");
    }
    check("#[cfg(test)]\nmod tests;\nmod other;\n", &["tests"]);
    check("#[cfg(test)]\nmod tests {\n}\n", &[]);
    check("#[cfg(all(test, loom))]\n#[path = \"x.rs\"]\npub(crate) mod drain;\n", &["drain"]);
}
