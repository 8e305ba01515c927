//! Two words that the field uses in opposite senses, and the words that say what is meant.

use super::checkout;
use super::source::{Kind, Source};
use super::{assert_tidy, markdown};

const BANNED: &[&str] = &["upstream", "downstream"];

/// Envoy's own names are all around there.
const EXEMPT: &[&str] = &["crates/onus-envoy", "bench/empty"];

/// `text` has code spans, literals and whatever else may quote a peer's names removed.
fn complaints(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().enumerate();
    let banned = lines.flat_map(|(index, line)| {
        let line = line.to_lowercase();
        let found = BANNED.iter().filter(move |word| line.contains(**word));
        found.map(move |word| (index + 1, word))
    });
    banned
        .map(|(line, word)| {
            format!(
                "{path}:{line}: `{word}`: say caller or callee, inbound or outbound; \
                 a peer's own name stands in a string, a code span or a code block"
            )
        })
        .collect()
}

/// Identifiers, comments and documentation; not literals, nor names quoted in comments.
fn rust_prose(text: &str) -> String {
    let source = Source::new(text);
    let code = source.only(&[Kind::Code]);
    let comments = source.only(&[Kind::Comment]);
    let joined = code.lines().zip(comments.lines());
    joined.map(|(code, comment)| format!("{code} {}\n", markdown::without_spans(comment))).collect()
}

#[test]
fn rule() {
    fn check(text: &str, lines: &[usize]) {
        let complaints = complaints("a", text);
        let found: Vec<_> = complaints.iter().filter_map(|c| c.split(':').nth(1)).collect();
        let expected: Vec<_> = lines.iter().map(ToString::to_string).collect();
        assert_eq!(found, expected, "{text}");
    }
    check("The callee fails.\n", &[]);
    check("One.\nThe Upstream fails.\n", &[2]);
    check(&rust_prose("let upstream_host = 1;\n// Downstreams.\n"), &[1, 2]);
    check(&rust_prose("let name = \"upstream\"; // Envoy's `upstream_rq`.\n"), &[]);
    check(&markdown::prose("Envoy:\n```yaml\nupstream: x\n```\n"), &[]);
}

#[test]
fn sources_and_docs_use_our_words() {
    let mut found = Vec::new();
    for file in checkout::files(&[".rs", ".md"]) {
        let text = match file.path.ends_with(".md") {
            true => markdown::prose(&file.text),
            false => rust_prose(&file.text),
        };
        if !EXEMPT.iter().any(|path| file.path.starts_with(path)) {
            found.extend(complaints(&file.path, &text));
        }
    }
    assert_tidy(&found);
}
