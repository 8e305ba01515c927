//! What the project's own TOML files say, as far as the tasks need it.
//!
//! Line by line instead of a parser: the files are ours or cargo's and keep to one form.

use std::fs;

use crate::step::{Failure, root};

/// The features of the crate `onus`; `default` is left out, it is what every other build checks.
pub(crate) fn features_of_onus() -> Result<Vec<String>, Failure> {
    Ok(features(&read("crates/onus/Cargo.toml")?))
}

/// The version of a package in `Cargo.lock`, if anything needs it.
pub(crate) fn locked_version(package: &str) -> Result<Option<String>, Failure> {
    Ok(version(&read("Cargo.lock")?, package))
}

fn read(path: &str) -> Result<String, Failure> {
    let path = root().join(path);
    fs::read_to_string(&path).map_err(|error| Failure::File { path, error })
}

fn features(manifest: &str) -> Vec<String> {
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

fn version(lock: &str, package: &str) -> Option<String> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines().skip_while(|line| *line != name);
    let version = lines.nth(1)?.strip_prefix("version = \"")?;
    version.strip_suffix('"').map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::{features, version};

    #[test]
    fn feature_names() {
        fn check(manifest: &str, expected: &[&str]) {
            assert_eq!(features(manifest), expected, "{manifest}");
        }
        check("[package]\nname = \"x\"\n", &[]);
        check("[features]\ndefault = []\naxum = [\"dep:axum\"]\n", &["axum"]);
        check(
            "[features]\n# a = []\nreport = [\n  \"dep:onus-api\",\n]\notel = []\n\n[dependencies]\nb = \"1\"\n",
            &["report", "otel"],
        );
    }

    #[test]
    fn locked_versions() {
        fn check(package: &str, expected: Option<&str>) {
            let lock = "[[package]]\nname = \"ab\"\nversion = \"1.2.3\"\n\n\
                        [[package]]\nname = \"a\"\nversion = \"0.1.0\"\n";
            assert_eq!(version(lock, package).as_deref(), expected, "{package}");
        }
        check("ab", Some("1.2.3"));
        check("a", Some("0.1.0"));
        check("b", None);
    }
}
