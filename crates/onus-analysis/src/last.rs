//! What agents were last told, beside the store: for a start at which the store cannot be read.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use onus_api::{ClassPage, SwitchOrder};

use crate::book::Book;
use crate::classes;
use crate::clock::Millis;

/// Class pages by service.
#[derive(Debug, Default)]
pub(crate) struct LastPages(HashMap<String, ClassPage>);

impl LastPages {
    /// The pages of the last checkpoint; none where they cannot be read.
    pub(crate) fn read(folder: &Path) -> Self {
        let pages = std::fs::read(file_in(folder)).map_err(|error| error.to_string());
        let pages = pages.and_then(|text| {
            serde_json::from_slice::<Vec<ClassPage>>(&text).map_err(|error| error.to_string())
        });
        match pages {
            Ok(pages) => Self(pages.into_iter().map(|page| (page.service.clone(), page)).collect()),
            Err(why) => {
                tracing::warn!(why, "onus analysis: the last classes cannot be read either");
                Self::default()
            }
        }
    }

    /// Keeps the pages of all services, under another name first, so that no half is read.
    pub(crate) fn write(folder: &Path, book: &Book, now: Millis) -> io::Result<()> {
        let pages: Vec<_> = book
            .service_names()
            .map(|service| classes::page(book, service, now))
            .filter(|page| !page.edges.is_empty() || page.switches != SwitchOrder::default())
            .collect();
        let path = file_in(folder);
        let beside = path.with_extension("new");
        std::fs::write(&beside, serde_json::to_vec(&pages)?)?;
        std::fs::rename(beside, path)
    }

    pub(crate) fn of(&self, service: &str) -> Option<&ClassPage> {
        self.0.get(service)
    }
}

fn file_in(folder: &Path) -> PathBuf {
    folder.join("classes.json")
}
