//! The files of the checkout, whether committed or not, so that a rule speaks before the commit.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file with its path from the root, written with `/`.
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All files whose name ends in one of `endings`, in the order of their paths.
pub(crate) fn files(endings: &[&str]) -> Vec<File> {
    let mut found = Vec::new();
    collect(&root(), &mut |path| {
        let name = relative(path);
        if endings.iter().any(|ending| name.ends_with(ending)) {
            // Another process may remove or rewrite a file while the test walks.
            if let Ok(text) = fs::read_to_string(path) {
                found.push(File { path: name, text });
            }
        }
    });
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(!found.is_empty(), "no file ends in {endings:?}");
    found
}

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).expect("crates/onus-cli").into()
}

fn collect(folder: &Path, visit: &mut impl FnMut(&Path)) {
    let entries = fs::read_dir(folder).expect("a folder of the checkout can be read");
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if !MADE_BY_TOOLS.iter().any(|made| *made == name) {
                collect(&path, visit);
            }
        } else {
            visit(&path);
        }
    }
}

fn relative(path: &Path) -> String {
    let path = path.strip_prefix(root()).unwrap_or(path);
    path.to_string_lossy().replace('\\', "/")
}

const MADE_BY_TOOLS: &[&str] = &[".git", "target", "corpus", "artifacts", "node_modules"];
