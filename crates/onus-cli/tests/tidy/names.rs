//! A file is named for its concept.

use super::{assert_tidy, checkout};

const SAY_NOTHING: &[&str] = &["utils", "util", "common", "helpers", "types", "misc"];

fn complaint(path: &str) -> Option<String> {
    let module = path.trim_end_matches("/mod.rs").trim_end_matches(".rs");
    let name = module.rsplit('/').next()?;
    SAY_NOTHING.contains(&name).then(|| {
        format!("{path}: `{name}` says nothing about what is inside; name the file for the concept it holds")
    })
}

#[test]
fn rule() {
    for bad in ["a/src/utils.rs", "a/tests/common/mod.rs", "types.rs"] {
        assert!(complaint(bad).is_some(), "{bad}");
    }
    for good in ["a/src/budget.rs", "a/common/x.rs", "a/src/edge_types.rs"] {
        assert_eq!(complaint(good), None);
    }
}

#[test]
fn files_are_named_for_concepts() {
    let files = checkout::files(&[".rs"]);
    let complaints: Vec<_> = files.iter().filter_map(|file| complaint(&file.path)).collect();
    assert_tidy(&complaints);
}
