//! The documents of a file.

/// Each document with the number of lines before it; comments alone are none.
///
/// As kubectl does it, the file is split before it is parsed: a document that is broken costs
/// nothing but itself.
pub(crate) fn documents(text: &str) -> Vec<(u64, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let (mut begin, mut lines_before) = (0, 0);
    let (mut at, mut line_number) = (0, 0);
    for line in text.split_inclusive('\n') {
        line_number += 1;
        if is_separator(line) {
            documents.push((lines_before, &text[begin..at]));
            (begin, lines_before) = (at + line.len(), line_number);
        }
        at += line.len();
    }
    documents.push((lines_before, &text[begin..]));
    documents.retain(|(_, document)| !document.lines().all(is_nothing));
    documents
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(is_nothing)
}

fn is_nothing(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_and_their_lines() {
        for (text, expected) in [
            ("a: 1\n", vec![(0, "a: 1\n")]),
            ("---\na: 1\n---\n", vec![(1, "a: 1\n")]),
            ("# head\n---\na: 1\n--- # next\nb: 2", vec![(2, "a: 1\n"), (4, "b: 2")]),
            ("a: 1\r\n---\r\nb: 2\r\n", vec![(0, "a: 1\r\n"), (2, "b: 2\r\n")]),
            ("a: |\n  ---\n", vec![(0, "a: |\n  ---\n")]),
            ("a: 1\n----\n", vec![(0, "a: 1\n----\n")]),
            ("\u{feff}a: 1", vec![(0, "a: 1")]),
            ("", vec![]),
            ("---\n---\n\n", vec![]),
        ] {
            assert_eq!(documents(text), expected, "{text:?}");
        }
    }
}
