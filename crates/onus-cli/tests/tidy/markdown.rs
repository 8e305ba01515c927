//! Markdown, as far as the rules need it: what is prose and what is code.

/// The text with fenced blocks and `code spans` replaced by spaces; lines keep their places.
pub(crate) fn prose(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut prose = String::with_capacity(text.len());
    for line in text.lines() {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => prose.push_str(&without_spans(line)),
            (None, Some(opened)) => fence = Some(opened),
            (Some(opened), Some(mark)) if opened == mark => fence = None,
            (Some(_), _) => {}
        }
        prose.push('\n');
    }
    prose
}

/// One line with its `code spans` replaced by spaces.
pub(crate) fn without_spans(line: &str) -> String {
    let mut rest = line;
    let mut kept = String::with_capacity(line.len());
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].bytes().take_while(|byte| *byte == b'`').count();
        let inside = &rest[start + ticks..];
        let Some(length) = inside.find(&rest[start..start + ticks]) else {
            break;
        };
        let end = start + ticks + length + ticks;
        kept.push_str(&rest[..start]);
        kept.push_str(&" ".repeat(end - start));
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept
}

#[test]
fn prose_is_what_is_not_code() {
    fn check(text: &str, expected: &str) {
        assert_eq!(prose(text), expected, "{text}");
    }
    check("a `b` c\n", "a     c\n");
    check("``a ` b`` c\n", "          c\n");
    check("a ` b\n", "a ` b\n");
    check("a\n```yaml\nb: 1\n```\nc\n", "a\n\n\n\nc\n");
    check("~~~\n```\n~~~\nc\n", "\n\n\nc\n");
}
