//! The file: a checkpoint of the book, and every report since.
//!
//! A report is on disk before it is answered, as a row of its own in the log, with one `fsync` for
//! all that came together. A checkpoint writes the rows that have changed and takes the reports
//! they hold out of the log, in one transaction: the file is at any moment a book and the reports
//! that it lacks, and what is counted twice in the log is told by its number.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onus_api::{AuditEntry, EdgeCounts, Report};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use crate::book::{Book, EdgeRow, InstanceRow, ProcedureRow};
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

/// The version of the layout. A file of a later one is left alone.
const VERSION: u64 = 1;

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
        let mut builder = Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let database = builder.create(&path).map_err(|error| {
            if matches!(error, redb::DatabaseError::DatabaseAlreadyOpen) {
                return StoreError::InUse { path: path.clone() };
            }
            broken(error.into())
        })?;
        prepare(&database, now).map_err(broken)?;
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

/// Makes the tables and says the version.
fn prepare(database: &Database, now: Millis) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        if meta.get("version")?.is_none() {
            meta.insert("version", VERSION)?;
            meta.insert("tick", now.0)?;
            meta.insert("tick-before", now.0)?;
        }
        transaction.open_table(LOG)?;
        transaction.open_table(EDGES)?;
        transaction.open_table(PROCEDURES)?;
        transaction.open_table(INSTANCES)?;
        transaction.open_table(WINDOWS)?;
        transaction.open_table(OVERRIDES)?;
        transaction.open_table(ORDERS)?;
        transaction.open_table(AUDIT)?;
    }
    transaction.commit()?;
    Ok(())
}

/// A store that is being read at the start.
struct Reading<'a> {
    path: &'a Path,
    database: &'a Database,
}

impl Reading<'_> {
    fn book(&self, limits: Limits, now: Millis) -> Result<(Book, u64), StoreError> {
        let mut book = Book::new(limits, now);
        let transaction = self.ok(self.database.begin_read())?;
        let meta = self.ok(transaction.open_table(META))?;
        let number = |key: &'static str| -> Result<u64, StoreError> {
            let value = self.ok(meta.get(key))?.map(|value| value.value());
            value.ok_or_else(|| self.damaged(format!("meta {key}")))
        };
        let found = number("version")?;
        if found > VERSION {
            return Err(StoreError::Version { path: self.path.to_owned(), found });
        }
        book.ticks = [Millis(number("tick")?), Millis(number("tick-before")?)];
        for row in self.ok(self.ok(transaction.open_table(EDGES))?.iter())? {
            let (id, row) = self.ok(row)?;
            let edge = EdgeRow::decode(row.value(), &mut book.names, now)
                .ok_or_else(|| self.damaged(format!("edge {}", id.value())))?;
            book.put_edge(id.value(), edge);
        }
        for row in self.ok(self.ok(transaction.open_table(PROCEDURES))?.iter())? {
            let (id, row) = self.ok(row)?;
            let procedure = ProcedureRow::decode(row.value(), &mut book.names)
                .ok_or_else(|| self.damaged(format!("procedure {}", id.value())))?;
            book.add_procedure(procedure);
        }
        for row in self.ok(self.ok(transaction.open_table(INSTANCES))?.iter())? {
            let (key, row) = self.ok(row)?;
            let instance = key.value().rsplit_once('\n').map(|(_, instance)| Arc::from(instance));
            let row = InstanceRow::decode(row.value(), &mut book.names);
            let (Some(instance), Some(row)) = (instance, row) else {
                return Err(self.damaged(format!("instance {:?}", key.value())));
            };
            book.add_instance(instance, row);
        }
        let mut changes = Vec::new();
        for row in self.ok(self.ok(transaction.open_table(OVERRIDES))?.iter())? {
            let (id, row) = self.ok(row)?;
            let it = serde_json::from_slice(row.value());
            let it = it.map_err(|_| self.damaged(format!("override {}", id.value())))?;
            changes.push(Change::SetOverride(it));
        }
        for row in self.ok(self.ok(transaction.open_table(ORDERS))?.iter())? {
            let (service, row) = self.ok(row)?;
            let order = serde_json::from_slice(row.value());
            let order = order.map_err(|_| self.damaged(format!("order {}", service.value())))?;
            changes.push(Change::SetOrder(order));
        }
        book.change(&changes);
        let next = self.replay(&transaction, &mut book)?;
        Ok((book, next))
    }

    /// Counts the reports of the log; the number of the next one.
    fn replay(
        &self,
        transaction: &redb::ReadTransaction,
        book: &mut Book,
    ) -> Result<u64, StoreError> {
        let mut next = 0;
        for row in self.ok(self.ok(transaction.open_table(LOG))?.iter())? {
            let (number, row) = self.ok(row)?;
            let report = row.value().split_first_chunk().and_then(|(arrived, report)| {
                let report: Report = serde_json::from_slice(report).ok()?;
                Some((Millis(u64::from_le_bytes(*arrived)), report))
            });
            let (arrived, report) =
                report.ok_or_else(|| self.damaged(format!("report {}", number.value())))?;
            book.apply(&report, arrived);
            next = number.value() + 1;
        }
        Ok(next)
    }

    fn ok<T, E: Into<redb::Error>>(&self, result: Result<T, E>) -> Result<T, StoreError> {
        result.map_err(|error| StoreError::Database {
            path: self.path.to_owned(),
            source: Box::new(error.into()),
        })
    }

    fn damaged(&self, what: String) -> StoreError {
        StoreError::Damaged { path: self.path.to_owned(), what }
    }
}
