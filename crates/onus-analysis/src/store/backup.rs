//! A copy of the file, made while it is written to.
//!
//! The pages of a file in use are no file: they are written in any order. A copy is made row by row
//! from one read transaction, into a file beside the store, and then sent from there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use redb::{Database, Key, ReadTransaction, TableDefinition, Value, WriteTransaction};

use super::{AUDIT, EDGES, INSTANCES, LOG, META, ORDERS, OVERRIDES, PROCEDURES, WINDOWS};

/// A copy that can be read; nothing is left of it on disk when it is dropped.
#[derive(Debug)]
pub(crate) struct Copied {
    pub(crate) file: File,
    pub(crate) length: u64,
    path: PathBuf,
}

impl Drop for Copied {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

fn file_in(folder: &Path) -> PathBuf {
    folder.join("backup.new")
}

/// Takes away what a process has left that died over a copy.
pub(super) fn clear(folder: &Path) {
    let _ = fs::remove_file(file_in(folder));
}

impl Copied {
    /// Copies all rows of a snapshot into a file in the folder of the store. One at a time.
    pub(crate) fn of(snapshot: &ReadTransaction, folder: &Path) -> Result<Self, redb::Error> {
        let path = file_in(folder);
        clear(folder);
        // From here on it is taken away, whatever happens.
        let file = File::create_new(&path)?;
        let mut copied = Self { file, length: 0, path };
        {
            let database = Database::create(&copied.path)?;
            let transaction = database.begin_write()?;
            copy(snapshot, &transaction, META)?;
            copy(snapshot, &transaction, LOG)?;
            copy(snapshot, &transaction, EDGES)?;
            copy(snapshot, &transaction, PROCEDURES)?;
            copy(snapshot, &transaction, INSTANCES)?;
            copy(snapshot, &transaction, WINDOWS)?;
            copy(snapshot, &transaction, OVERRIDES)?;
            copy(snapshot, &transaction, ORDERS)?;
            copy(snapshot, &transaction, AUDIT)?;
            transaction.commit()?;
        }
        copied.file = File::open(&copied.path)?;
        copied.length = copied.file.metadata()?.len();
        Ok(copied)
    }
}

fn copy<K: Key, V: Value>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), redb::Error> {
    let mut copy = to.open_table(table)?;
    for row in from.open_table(table)?.range::<K::SelfType<'_>>(..)? {
        let (key, value) = row?;
        copy.insert(key.value(), value.value())?;
    }
    Ok(())
}
