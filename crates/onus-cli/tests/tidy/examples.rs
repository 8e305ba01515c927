//! The lines that README shows are lines of an example that compiles, and an example fits one screen.

use super::assert_tidy;
use super::checkout::{self, File};

/// Lines in all, with docs and imports: more is an application, not an example.
const MOST: usize = 60;

/// The parts of an example between the two marks, without their common indentation.
fn marked(example: &str) -> Vec<String> {
    let parts = example.split("// README:begin\n").skip(1);
    parts.filter_map(|part| Some(dedent(part.split_once("// README:end")?.0))).collect()
}

fn dedent(part: &str) -> String {
    let lines = || part.lines().filter(|line| !line.trim().is_empty());
    let indent = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    lines().map(|line| format!("{}\n", &line[indent..])).collect()
}

/// The blocks of Rust in a document.
fn rust_blocks(document: &str) -> Vec<String> {
    let blocks = document.split("```rust\n").skip(1);
    blocks.filter_map(|block| block.split("```").next()).map(str::to_owned).collect()
}

fn complaints(readme: &str, examples: &[File]) -> Vec<String> {
    let shown = rust_blocks(readme);
    let mut complaints = Vec::new();
    let mut compiled = Vec::new();
    for File { path, text } in examples {
        let lines = text.lines().count();
        if lines > MOST {
            complaints.push(format!("{path}: {lines} lines, {MOST} are allowed in an example"));
        }
        for part in marked(text) {
            if !shown.contains(&part) {
                complaints.push(format!("{path}: README.md shows other lines than these:\n{part}"));
            }
            compiled.push(part);
        }
    }
    for block in shown.iter().filter(|block| !compiled.contains(block)) {
        complaints.push(format!(
            "README.md: these lines are in no example; put them between `// README:begin` and \
             `// README:end` of one that compiles:\n{block}"
        ));
    }
    complaints
}

#[test]
fn rule() {
    fn check(readme: &str, example: &str, expected: usize) {
        let file = File { path: "examples/a.rs".to_owned(), text: example.to_owned() };
        let complaints = complaints(readme, &[file]);
        assert_eq!(complaints.len(), expected, "{readme}{example}{complaints:?}");
    }
    let marks = "fn f() {\n    // README:begin\n    g()\n        .h();\n    // README:end\n}\n";
    check("```rust\ng()\n    .h();\n```\n", marks, 0);
    check("```rust\ng()\n    .i();\n```\n", marks, 2);
    check("```sh\ng\n```\n", marks, 1);
    check("```rust\nother();\n```\n", "fn f() {}\n", 1);
    check("", &"f();\n".repeat(MOST), 0);
    check("", &"f();\n".repeat(MOST + 1), 1);
}

#[test]
fn readme_shows_what_compiles() {
    let readme = std::fs::read_to_string(checkout::root().join("README.md")).expect("README.md");
    let mut examples = checkout::files(&[".rs"]);
    examples.retain(|file| file.path.contains("/examples/") && file.path.starts_with("crates/"));
    assert_tidy(&complaints(&readme, &examples));
}
