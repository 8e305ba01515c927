//! Nothing in the project names a place on somebody's machine.

use super::{assert_tidy, checkout};

/// Folders that hold a person's own files, split so that this file does not name them.
const PERSONAL: &[&str] =
    &[concat!("/ho", "me/"), concat!("/Us", "ers/"), concat!("/ro", "ot/"), concat!("/wo", "rk/")];

const TEXT: &[&str] =
    &[".rs", ".md", ".toml", ".yaml", ".yml", ".json", ".sh", ".py", ".txt", "justfile", ".ci/run"];

fn complaints(path: &str, text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in PERSONAL {
            // In the middle of a longer path or address it is no absolute path.
            let absolute = line.match_indices(place).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                before.is_none_or(|c| !c.is_alphanumeric() && !"_-.}/".contains(c))
            });
            if absolute {
                let line = index + 1;
                complaints.push(format!(
                    "{path}:{line}: `{place}` is a place on one machine; use a path relative to the root"
                ));
            }
        }
    }
    complaints
}

#[test]
fn rule() {
    let place = PERSONAL[0];
    for bad in [format!("cd {place}me/onus"), format!("\"{place}x\"")] {
        assert_eq!(complaints("a", &bad).len(), 1, "{bad}");
    }
    for good in [format!("https://example.com{place}x"), format!("..{place}x")] {
        assert_eq!(complaints("a", &good), [""; 0], "{good}");
    }
}

#[test]
fn no_place_of_one_machine() {
    let mut found = Vec::new();
    for file in checkout::files(TEXT) {
        found.extend(complaints(&file.path, &file.text));
    }
    assert_tidy(&found);
}
