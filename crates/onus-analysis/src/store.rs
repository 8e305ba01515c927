//! The file: a checkpoint of the book, and every report since.
//!
//! A report is on disk before it is answered, as a row of its own in the log, with one `fsync` for
//! all that came together. A checkpoint writes the rows that have changed and takes the reports
//! they hold out of the log, in one transaction: the file is at any moment a book and the reports
//! that it lacks, and what is counted twice in the log is told by its number.

mod backup;
mod migrate;
mod reading;

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use onus_api::{AuditEntry, EdgeCounts};
use redb::{
    Database, ReadTransaction, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction,
};

pub(crate) use self::backup::Copied;
use self::migrate::VERSION;
use self::reading::Reading;
use crate::book::Book;
use crate::clock::Millis;
use crate::codec::{Reader, Writer};
use crate::config::Limits;
use crate::orders::Change;
use crate::window::{WindowKey, is_trouble};

const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// Reports that the checkpoint lacks, in the order in which they were stored.
const LOG: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("log");
const EDGES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("edges");
const PROCEDURES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("procedures");
const INSTANCES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("instances");
const WINDOWS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("windows");
const OVERRIDES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("overrides");
const ORDERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("orders");
/// Who said what, in the order of time; nothing is taken out of it.
const AUDIT: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("audit");

/// The book is in memory already; pages are read at the start, and once a minute where they are
/// rewritten.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// The store on disk.
#[derive(Debug)]
pub(crate) struct Store {
    database: Database,
    /// The number of the next report in the log.
    next: u64,
}

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder cannot be made.
    #[error("make the folder {path}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be opened, read or written.
    #[error("use the store {path}")]
    Database {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<redb::Error>,
    },
    /// Another process has it.
    #[error("open the store {path}: another process uses it")]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A later version of Onus has written the file.
    #[error(
        "read the store {path}: it has version {found}, and this onus knows up to {VERSION}; run the onus that wrote it, or move the file away"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: u64,
    },
    /// A row is not what any version has written.
    #[error(
        "read the store {path}: {what} is damaged; put a backup in its place, or move the file away and classes are learnt anew"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Which row.
        what: String,
    },
}

impl StoreError {
    /// Whether it is for a person to mend before anything runs: nothing is wrong with the file.
    pub(crate) fn is_mistake(&self) -> bool {
        match self {
            Self::InUse { .. } | Self::Version { .. } => true,
            Self::Folder { .. } | Self::Database { .. } | Self::Damaged { .. } => false,
        }
    }

    /// The text with what caused it.
    pub(crate) fn with_causes(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("failed to {self}: {cause}"),
            None => format!("failed to {self}"),
        }
    }
}

/// The file in the folder of the store.
pub(crate) fn file_in(folder: &Path) -> PathBuf {
    folder.join("analysis.redb")
}

impl Store {
    /// Opens the store, makes one where there is none, and reads the book: all that was ever
    /// answered as stored.
    pub(crate) fn open(
        folder: &Path,
        limits: Limits,
        now: Millis,
    ) -> Result<(Self, Book), StoreError> {
        // A file may be damaged in ways that its reader takes for impossible.
        let opened = catch_unwind(AssertUnwindSafe(|| Self::open_unguarded(folder, limits, now)));
        opened.unwrap_or_else(|_| {
            let what = "a page".to_owned();
            Err(StoreError::Damaged { path: file_in(folder), what })
        })
    }

    fn open_unguarded(
        folder: &Path,
        limits: Limits,
        now: Millis,
    ) -> Result<(Self, Book), StoreError> {
        std::fs::create_dir_all(folder)
            .map_err(|source| StoreError::Folder { path: folder.to_owned(), source })?;
        let path = file_in(folder);
        let broken = |source: redb::Error| StoreError::Database {
            path: path.clone(),
            source: Box::new(source),
        };
        backup::clear(folder);
        let mut builder = Database::builder();
        // All pages are read at the start in any case: what a disk has changed is found then, and
        // not believed.
        builder.set_cache_size(CACHE_BYTES).set_check_integrity_on_open(true);
        // Nothing is written to a file of a later version, not even that it was open.
        if let Ok(database) = builder.open_read_only(&path) {
            migrate::check(&database.begin_read().map_err(|error| broken(error.into()))?, &path)?;
        }
        let database = builder.create(&path).map_err(|error| {
            if matches!(error, redb::DatabaseError::DatabaseAlreadyOpen) {
                return StoreError::InUse { path: path.clone() };
            }
            broken(error.into())
        })?;
        migrate::check(&database.begin_read().map_err(|error| broken(error.into()))?, &path)?;
        migrate::prepare(&database, now).map_err(broken)?;
        let reading = Reading { path: &path, database: &database };
        let (book, next) = reading.book(limits, now)?;
        Ok((Self { database, next }, book))
    }

    /// Puts reports at the end of the log; they are on disk when this returns.
    pub(crate) fn log<'a>(
        &mut self,
        reports: impl Iterator<Item = (Millis, &'a [u8])>,
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        let mut next = self.next;
        {
            let mut log = transaction.open_table(LOG)?;
            let mut row = Vec::new();
            for (arrived, report) in reports {
                row.clear();
                row.extend_from_slice(&arrived.0.to_le_bytes());
                row.extend_from_slice(report);
                log.insert(next, row.as_slice())?;
                next += 1;
            }
        }
        transaction.commit()?;
        self.next = next;
        Ok(())
    }

    /// Writes what an operator changes, and that it was said: all of it or nothing.
    pub(crate) fn change(
        &self,
        changes: &[Change],
        entries: &[AuditEntry],
    ) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        {
            let mut overrides = transaction.open_table(OVERRIDES)?;
            let mut orders = transaction.open_table(ORDERS)?;
            for change in changes {
                match change {
                    Change::SetOverride(it) => {
                        overrides.insert(it.id.as_str(), json(it).as_slice())?;
                    }
                    Change::DropOverride(it) => {
                        overrides.remove(it.id.as_str())?;
                    }
                    Change::SetOrder(order)
                        if order.mode.is_none() && order.shield_until.is_none() =>
                    {
                        orders.remove(order.service.as_str())?;
                    }
                    Change::SetOrder(order) => {
                        orders.insert(order.service.as_str(), json(order).as_slice())?;
                    }
                }
            }
            let mut audit = transaction.open_table(AUDIT)?;
            let next = audit.last()?.map_or(0, |(number, _)| number.value() + 1);
            for (number, entry) in (next..).zip(entries) {
                audit.insert(number, json(entry).as_slice())?;
            }
        }
        transaction.commit()?;
        Ok(())
    }

    /// The file as it is now, whatever is written later, for [`backup`].
    pub(crate) fn snapshot(&self) -> Result<ReadTransaction, redb::Error> {
        Ok(self.database.begin_read()?)
    }

    /// The minutes with failures in a range of time.
    pub(crate) fn windows(
        &self,
        minutes: Range<u32>,
    ) -> Result<Vec<(WindowKey, EdgeCounts)>, redb::Error> {
        let first = |minute| WindowKey { minute, edge: 0 }.to_u64();
        let transaction = self.database.begin_read()?;
        let windows = transaction.open_table(WINDOWS)?;
        let mut found = Vec::new();
        for row in windows.range(first(minutes.start)..first(minutes.end))? {
            let (key, row) = row?;
            if let Some(counts) = Reader::new(row.value()).counts() {
                found.push((WindowKey::of_u64(key.value()), EdgeCounts::from_array(counts)));
            }
        }
        Ok(found)
    }

    /// The newest lines of the audit log, newest first.
    pub(crate) fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, redb::Error> {
        let transaction = self.database.begin_read()?;
        let mut entries = Vec::new();
        for row in transaction.open_table(AUDIT)?.iter()?.rev().take(most) {
            let (_, row) = row?;
            entries.extend(serde_json::from_slice::<AuditEntry>(row.value()).ok());
        }
        Ok(entries)
    }

    /// Writes what has changed, and empties the log.
    pub(crate) fn checkpoint(&self, book: &Book, now: Millis) -> Result<(), redb::Error> {
        let transaction = self.database.begin_write()?;
        write_book(&transaction, book, now)?;
        transaction.open_table(LOG)?.retain_in(..self.next, |_, _| false)?;
        {
            let mut meta = transaction.open_table(META)?;
            meta.insert("tick", book.ticks[0].0)?;
            meta.insert("tick-before", book.ticks[1].0)?;
        }
        transaction.commit()?;
        Ok(())
    }
}

/// Numbers and text: it cannot fail.
fn json(document: &impl serde::Serialize) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

fn write_book(transaction: &WriteTransaction, book: &Book, now: Millis) -> Result<(), redb::Error> {
    let mut edges = transaction.open_table(EDGES)?;
    for (id, row) in book.edges_by_id().filter(|(_, row)| row.dirty) {
        edges.insert(id, row.encode(&book.names, now).as_slice())?;
    }
    for &id in book.freed() {
        edges.remove(id)?;
    }
    let mut procedures = transaction.open_table(PROCEDURES)?;
    for (id, row) in (0_u32..).zip(book.procedures()).filter(|(_, row)| row.dirty) {
        procedures.insert(id, row.encode(&book.names).as_slice())?;
    }
    let mut instances = transaction.open_table(INSTANCES)?;
    for (instance, row) in book.instances().filter(|(_, row)| row.dirty) {
        let key = format!("{}\n{instance}", book.names.name(row.service));
        instances.insert(key.as_str(), row.encode(&book.names).as_slice())?;
    }
    let mut windows = transaction.open_table(WINDOWS)?;
    for (key, counts) in &book.windows {
        let key = key.to_u64();
        let before = windows.get(key)?.and_then(|row| Reader::new(row.value()).counts());
        let counts = before.map_or(*counts, |before| counts.plus(EdgeCounts::from_array(before)));
        if is_trouble(&counts) {
            let row = Writer::default().counts(&counts.to_array()).finish();
            windows.insert(key, row.as_slice())?;
        }
    }
    let kept = book.limits().windows.as_secs() / 60;
    let oldest = u64::from(now.minute()).saturating_sub(kept) << 32;
    windows.retain_in(..oldest, |_, _| false)?;
    Ok(())
}
