//! Tables of pages in `docs/`, printed by the tests that know their figures.

mod model;

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Compares every table between `<!-- figures: NAME -->` and `<!-- end -->` of a page with what
/// `table` prints for the name, and counts them. With `UPDATE_TABLES` set it writes them first.
#[track_caller]
pub(crate) fn keep(page: &str, table: impl Fn(&str) -> String) -> usize {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let read = || fs::read_to_string(&path).expect("the page can be read");
    let text = read();
    let mut parts = text.split(BEGIN);
    let mut printed = parts.next().expect("a text has a first part").to_owned();
    let mut tables = 0;
    for part in parts {
        let (name, rest) = part.split_once(" -->").expect("the name of a table");
        let (_, after) = rest.split_once(END).expect("an end of the figures");
        // Writing to a string cannot fail.
        let _ = write!(printed, "{BEGIN}{name} -->\n{}{END}{after}", table(name));
        tables += 1;
    }
    if env::var_os("UPDATE_TABLES").is_some() {
        fs::write(&path, &printed).expect("the page can be written");
    }
    let stale: Vec<_> =
        text.lines().filter(|line| !printed.lines().any(|known| known == *line)).collect();
    assert!(
        read() == printed,
        "docs/{page} has figures that nothing prints: {stale:#?}\n\
         run `UPDATE_TABLES=1 cargo test -p onus-sim figures` and review them"
    );
    tables
}

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";
