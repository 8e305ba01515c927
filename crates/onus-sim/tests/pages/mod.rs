//! Figures and charts of pages in `docs/`, printed by the tests that know them.

mod model;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::{env, fs};

const BEGIN: &str = "<!-- figures: ";
const END: &str = "<!-- end -->";

const RENEW: &str = "run `just tables` and review what changes";

/// The text of a page.
pub(crate) fn text(page: &str) -> String {
    fs::read_to_string(path(page)).expect("the page can be read")
}

/// The names of a page's places for figures.
pub(crate) fn places(page: &str) -> Vec<String> {
    let text = text(page);
    let parts = text.split(BEGIN).skip(1);
    parts.filter_map(|part| Some(part.split_once(" -->")?.0.to_owned())).collect()
}

/// That a page has these figures at the place of this name. With `UPDATE_TABLES` it gets them.
#[track_caller]
pub(crate) fn check_figures(page: &str, name: &str, printed: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let text = text(page);
    let begin = format!("{BEGIN}{name} -->\n");
    let (before, rest) = text.split_once(&begin).expect("a place for the figures");
    let (found, after) = rest.split_once(END).expect("an end of the figures");
    if updates() {
        let text = [before, &begin, printed, END, after].concat();
        fs::write(path(page), text).expect("the page can be written");
    } else {
        assert_eq!(found, printed, "docs/{page}, {name}: {RENEW}");
    }
}

/// That a file beside the pages is this text. With `UPDATE_TABLES` it becomes it.
#[track_caller]
pub(crate) fn check_file(file: &str, printed: &str) {
    let path = path(file);
    if updates() {
        let folder = path.parent().expect("docs is a folder");
        fs::create_dir_all(folder).expect("the folder can be made");
        fs::write(&path, printed).expect("the file can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(found == printed, "docs/{file} is not what is printed: {RENEW}");
}

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page)
}

fn updates() -> bool {
    env::var_os("UPDATE_TABLES").is_some()
}
