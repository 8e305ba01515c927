//! A file has one idea and fits in a reader's head.

use super::checkout::{self, File};
use super::{assert_tidy, source::Source};

/// Lines of code: no blank, comment, documentation or test lines.
const MOST: usize = 400;

fn complaint(path: &str, text: &str) -> Option<String> {
    let lines = Source::new(text).lines_of_code();
    (lines > MOST).then(|| {
        format!("{path}: {lines} lines of code, {MOST} are allowed; split it by concept, not into a bag of helpers")
    })
}

/// Whether only tests compile the file: by its folder, or because a parent declares it so.
pub(crate) fn test_files(files: &[File]) -> Vec<String> {
    let mut tests = Vec::new();
    for file in files {
        let (folder, name) = file.path.rsplit_once('/').unwrap_or(("", &file.path));
        if format!("/{folder}/").contains("/tests/") {
            tests.push(file.path.clone());
        }
        let stem = name.trim_end_matches(".rs");
        let own = match stem {
            "lib" | "main" | "mod" => folder.to_owned(),
            _ => format!("{folder}/{stem}"),
        };
        for module in Source::new(&file.text).test_modules() {
            let of_module = |path: &String| {
                let rest = path.strip_prefix(&format!("{own}/{module}"));
                rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
            };
            let paths = files.iter().map(|file| &file.path);
            tests.extend(paths.filter(|path| of_module(path)).cloned());
        }
    }
    tests
}

#[test]
fn rule() {
    let code = |lines| "f();\n".repeat(lines);
    assert_eq!(complaint("a.rs", &code(MOST)), None);
    assert!(complaint("a.rs", &code(MOST + 1)).is_some());
    let documented = format!("//! Docs.\n\n{}// why\n", code(MOST));
    assert_eq!(complaint("a.rs", &documented), None);
}

#[test]
fn test_files_by_folder_and_declaration() {
    let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
    let declared = "#[cfg(test)]\nmod x;\nmod y;\n";
    let files = [
        file("c/src/lib.rs", declared),
        file("c/src/x.rs", ""),
        file("c/src/xy.rs", ""),
        file("c/src/y.rs", declared),
        file("c/src/y/x/mod.rs", ""),
        file("c/tests/main.rs", ""),
    ];
    let expected = ["c/src/x.rs", "c/src/y/x/mod.rs", "c/tests/main.rs"];
    assert_eq!(test_files(&files), expected);
}

#[test]
fn files_are_short() {
    let files = checkout::files(&[".rs"]);
    let tests = test_files(&files);
    let product = files.iter().filter(|file| !tests.contains(&file.path));
    let complaints: Vec<_> = product.filter_map(|file| complaint(&file.path, &file.text)).collect();
    assert_tidy(&complaints);
}
