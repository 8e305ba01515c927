//! Each test that docs/scenarios.md names is there.

use super::assert_tidy;
use super::checkout::{self, File};

/// The tests that the page names, as file without its ending and function.
fn named(page: &str) -> Vec<(&str, &str)> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter_map(|name| name.rsplit_once("::")).collect()
}

fn complaints(page: &str, sources: &[File]) -> Vec<String> {
    let is_there = |file: &str, test: &str| {
        let path = format!("crates/{file}.rs");
        let text = sources.iter().find(|source| source.path == path).map(|source| &source.text);
        text.is_some_and(|text| text.contains(&format!("fn {test}(")))
    };
    named(page)
        .into_iter()
        .filter(|(file, test)| !is_there(file, test))
        .map(|(file, test)| {
            format!(
                "docs/scenarios.md: there is no test {test} in crates/{file}.rs; name the one \
                     that took its place"
            )
        })
        .collect()
}

#[test]
fn rule() {
    let source = File { path: "crates/a/tests/b.rs".into(), text: "fn holds() {}".into() };
    let sources = [source];
    for (page, count) in [
        ("| S01 | it breaks | `a/tests/b::holds` |", 0),
        ("| S01 | it breaks | `a/tests/b::hold` |", 1),
        ("| S01 | it breaks | `a/tests/c::holds`<br>`a/tests/b::holds` |", 1),
        ("| S01 | `tracestate` is not written | |", 0),
    ] {
        assert_eq!(complaints(page, &sources).len(), count, "{page}");
    }
}

#[test]
fn scenarios_have_the_tests_they_name() {
    let page = checkout::files(&["docs/scenarios.md"]);
    let sources = checkout::files(&[".rs"]);
    assert!(named(&page[0].text).len() > 50, "the page names its tests");
    assert_tidy(&complaints(&page[0].text, &sources));
}
