//! Graphs and counters that others published, which are no part of the project.

mod petshop;
mod topologies;

use std::fs;
use std::path::{Path, PathBuf};

/// A file or folder of `ONUS_DATA`, or of the folder beside the project. Says so where it is missing.
#[expect(clippy::print_stdout, reason = "whoever runs the tests reads what was skipped")]
fn data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("ONUS_DATA").map_or(beside, PathBuf::from).join(name);
    if !path.exists() {
        println!("skipped: there is no {} (ONUS_DATA names another folder)", path.display());
        return None;
    }
    Some(path)
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("the file can be read")
}

/// The rows of a table without quotes.
fn rows(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}
