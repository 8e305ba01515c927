//! Every MUST of docs/protocol.md is cited by a test, and every citation names a sentence.
//!
//! A line of the protocol that starts with an id, `[claim-3]`, is a sentence of that number;
//! elsewhere on that page an id stands without brackets. A test cites the sentence in a comment
//! or a string, a vector in its `cites` list. A citation is a promise that the test fails when
//! the sentence is broken.

use std::collections::BTreeSet;

use super::checkout::{self, File};
use super::sizes::test_files;
use super::source::{Kind, Source};
use super::{assert_tidy, markdown};

/// A numbered sentence.
struct Sentence {
    id: String,
    must: bool,
}

/// The sentences of the protocol, in order.
fn sentences(protocol: &str) -> Vec<Sentence> {
    let prose = markdown::prose(protocol);
    let starts: Vec<_> =
        ids(&prose).into_iter().filter(|(at, _)| begins_sentence(&prose[..*at])).collect();
    let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([prose.len()]);
    let with_text = starts.iter().zip(ends).map(|((at, id), end)| {
        let text = prose[*at..end].split("\n\n").next().unwrap_or_default();
        let must = text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "MUST");
        Sentence { id: id.clone(), must }
    });
    with_text.collect()
}

/// Only the marks of lists, tables and emphasis stand before it on its line.
fn begins_sentence(before: &str) -> bool {
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.chars().all(|c| c.is_ascii_digit() || "-*+|>._ ".contains(c))
}

/// The ids that the page itself names: words that look like one and begin like a known one.
fn references(protocol: &str, sentences: &[Sentence]) -> Vec<String> {
    let topic = |id: &str| id.split('-').next().map(str::to_owned);
    let topics: BTreeSet<_> = sentences.iter().filter_map(|sentence| topic(&sentence.id)).collect();
    let known = |word: &&str| topic(word).is_some_and(|topic| topics.contains(&topic));
    let prose = markdown::prose(protocol);
    let words = prose.split(|c: char| !c.is_alphanumeric() && c != '-');
    words.filter(|word| is_id(word)).filter(known).map(str::to_owned).collect()
}

/// Every `[word-1]` of `text` with its place.
fn ids(text: &str) -> Vec<(usize, String)> {
    let opened = text.match_indices('[');
    opened
        .filter_map(|(at, _)| {
            let id = text[at + 1..].split(']').next()?;
            is_id(id).then(|| (at, id.to_owned()))
        })
        .collect()
}

fn is_id(id: &str) -> bool {
    let Some((word, number)) = id.split_once('-') else {
        return false;
    };
    let letters = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    letters && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The entries of the `cites` lists of a YAML file, in flow or in block form.
fn cites(yaml: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut inside = false;
    for line in yaml.lines() {
        let entry = line.trim_start().trim_start_matches("- ");
        if let Some(list) = entry.strip_prefix("cites:") {
            inside = true;
            collect_ids(list, &mut found);
        } else if inside && (line.trim_start().starts_with("- ") || is_id(first_word(entry))) {
            collect_ids(entry, &mut found);
        } else {
            inside = false;
            continue;
        }
        inside &= !line.contains(']');
    }
    found
}

fn first_word(entry: &str) -> &str {
    entry.split([',', ' ', ']']).next().unwrap_or_default()
}

fn collect_ids(list: &str, found: &mut Vec<String>) {
    let list = list.split(" #").next().unwrap_or_default();
    let words = list.split([',', ' ', '[', ']', '"', '\'']);
    found.extend(words.filter(|word| is_id(word)).map(str::to_owned));
}

/// What a file cites: in tests, which counts as proof, and anywhere, which must only exist.
fn citations(file: &File, is_test: bool) -> (Vec<String>, Vec<String>) {
    // A list after `cites:` is the text of a vector under test.
    let cited = |text: &str| {
        let ids = ids(text).into_iter();
        ids.filter(|(at, _)| !text[..*at].ends_with("cites: ")).map(|(_, id)| id).collect()
    };
    if file.path.ends_with(".yaml") {
        let cites = cites(&file.text);
        return (cites.clone(), cites);
    }
    let source = Source::new(&file.text);
    let all = source.only(&[Kind::Comment, Kind::Literal]);
    let tests = if is_test { all.clone() } else { source.test_prose() };
    (cited(&tests), cited(&all))
}

fn complaints(protocol: &str, files: &[File]) -> Vec<String> {
    let sentences = sentences(protocol);
    let mut known = BTreeSet::new();
    let mut complaints = Vec::new();
    for sentence in &sentences {
        if !known.insert(sentence.id.as_str()) {
            complaints.push(format!("[{}] numbers two sentences", sentence.id));
        }
    }
    let unknown = |id: &String| !known.contains(id.as_str());
    for id in references(protocol, &sentences).into_iter().filter(unknown) {
        complaints.push(format!("docs/protocol.md refers to {id}, which numbers no sentence"));
    }
    let tests = test_files(files);
    let mut proven = BTreeSet::new();
    for file in files {
        let (in_tests, anywhere) = citations(file, tests.contains(&file.path));
        proven.extend(in_tests);
        for id in anywhere.into_iter().filter(unknown) {
            complaints.push(format!(
                "{} cites [{id}], which numbers no sentence of docs/protocol.md",
                file.path
            ));
        }
    }
    let musts = sentences.iter().filter(|sentence| sentence.must);
    for sentence in musts.filter(|sentence| !proven.contains(&sentence.id)) {
        complaints.push(format!(
            "[{}] says MUST and no test cites it; write one that fails when the sentence is broken",
            sentence.id
        ));
    }
    complaints
}

/// Files in which a citation counts. These rules are left out: they cite what does not exist.
fn citing_files() -> Vec<File> {
    let mut files = checkout::files(&[".rs", ".yaml"]);
    files.retain(|file| {
        let yaml = file.path.ends_with(".yaml");
        let folders: &[&str] = if yaml { &["docs/conformance/"] } else { &["crates/", "bench/"] };
        folders.iter().any(|folder| file.path.starts_with(folder))
            && !file.path.starts_with("crates/onus-cli/tests/tidy/")
    });
    files
}

#[test]
fn sentences_of_a_protocol() {
    fn check(text: &str, expected: &[(&str, bool)]) {
        let sentences = sentences(text);
        let found: Vec<_> = sentences.iter().map(|s| (s.id.as_str(), s.must)).collect();
        assert_eq!(found, expected, "{text}");
    }
    check("[a-1] It MUST.\n", &[("a-1", true)]);
    check("- **[a-1]** It SHOULD, see [a-2].\n", &[("a-1", false)]);
    check(
        "1. [a-1] It MUST NOT, as [a-2] says.\n2. [a-3] It may.\n",
        &[("a-1", true), ("a-3", false)],
    );
    check("[a-1] One\ntwo MUST.\n\nThey MUST.\n", &[("a-1", true)]);
    check("[a-1] One.\n\nThey MUST.\n", &[("a-1", false)]);
    check("| [a-1] | MUST |\n| [a-2] | may |\n", &[("a-1", true), ("a-2", false)]);
    check("[a-1] It MUSTER.\n`[a-2]` MUST\n[A-3] MUST [a-b] [a4]\n", &[("a-1", true)]);
}

#[test]
fn cites_lists() {
    fn check(yaml: &str, expected: &[&str]) {
        assert_eq!(cites(yaml), expected, "{yaml}");
    }
    check("cites: [a-1, b-22]\nname: c-3\n", &["a-1", "b-22"]);
    check("- cites: [\"a-1\"]\n  steps:\n  - d-4\n", &["a-1"]);
    check("cites:\n  - a-1 # not e-5\n  - b-2\nsteps:\n  - c-3\n", &["a-1", "b-2"]);
    check("cites: [a-1,\n  b-2]\nx:\n  - c-3\n", &["a-1", "b-2"]);
    check("steps: [a-1]\n", &[]);
}

#[test]
fn rule() {
    fn check(protocol: &str, path: &str, text: &str, complaint: &str) {
        let file = File { path: path.to_owned(), text: text.to_owned() };
        let found = complaints(protocol, &[file]).join("\n");
        let matches =
            if complaint.is_empty() { found.is_empty() } else { found.contains(complaint) };
        assert!(matches, "{protocol}{path}: {text}: {found}");
    }
    let must = "[a-1] It MUST.\n";
    check(must, "c/src/a.rs", "// [a-1]\n", "no test cites it");
    check(must, "c/src/a.rs", "#[cfg(test)]\nmod tests { /* [a-1] */ }\n", "");
    check(must, "c/tests/a.rs", "f(\"[a-1]\");\n", "");
    check(must, "c/tests/a.rs", "f(\"cites: [a-1]\");\n", "no test cites it");
    check(must, "c/tests/a.rs", "x[a-1];\n", "no test cites it");
    check(must, "d/a.yaml", "cites: [a-1]\n", "");
    check("[a-1] It may.\n", "c/src/a.rs", "", "");
    check("[a-1] It may.\n", "c/src/a.rs", "// [a-2]\n", "cites [a-2]");
    check("[a-1] It may.\n[a-1] Or not.\n", "c/src/a.rs", "", "two sentences");
    check("[a-1] It may, see a-2.\n", "c/src/a.rs", "", "refers to a-2");
    check("[a-1] It may, see utf-8.\n", "c/src/a.rs", "", "");
}

#[test]
fn every_must_is_cited_by_a_test() {
    let path = checkout::root().join("docs/protocol.md");
    let protocol = std::fs::read_to_string(path).expect("docs/protocol.md");
    assert!(sentences(&protocol).iter().filter(|sentence| sentence.must).count() > 50);
    assert_tidy(&complaints(&protocol, &citing_files()));
}
