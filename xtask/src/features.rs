//! The features of the crate `onus`, read from its manifest.

use std::fs;

use crate::step::{Failure, root};

/// The names in the `[features]` table, `default` left out: it is what every other build checks.
pub(crate) fn of_onus() -> Result<Vec<String>, Failure> {
    let path = root().join("crates/onus/Cargo.toml");
    match fs::read_to_string(&path) {
        Ok(manifest) => Ok(names(&manifest)),
        Err(error) => Err(Failure::File { path, error }),
    }
}

/// A table of one-line or multi-line lists; the manifest is ours and keeps to that.
fn names(manifest: &str) -> Vec<String> {
    manifest
        .lines()
        .map(str::trim)
        .skip_while(|line| *line != "[features]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split_once('='))
        .map(|(name, _)| name.trim().trim_matches('"'))
        .filter(|name| !name.starts_with('#') && *name != "default")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::names;

    fn check(manifest: &str, expected: &[&str]) {
        assert_eq!(names(manifest), expected, "{manifest}");
    }

    #[test]
    fn feature_names() {
        check("[package]\nname = \"x\"\n", &[]);
        check("[features]\ndefault = []\naxum = [\"dep:axum\"]\n", &["axum"]);
        check(
            "[features]\n# a = []\nreport = [\n  \"dep:onus-api\",\n]\notel = []\n\n[dependencies]\nb = \"1\"\n",
            &["report", "otel"],
        );
    }
}
