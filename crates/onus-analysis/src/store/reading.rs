//! Reads the book from the file, at the start.

use std::path::Path;
use std::sync::Arc;

use onus_api::Report;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::{EDGES, INSTANCES, LOG, META, ORDERS, OVERRIDES, PROCEDURES, StoreError};
use crate::book::{Book, EdgeRow, InstanceRow, ProcedureRow};
use crate::clock::Millis;
use crate::config::Limits;
use crate::orders::Change;

/// A store that is being read at the start.
pub(super) struct Reading<'a> {
    pub(super) path: &'a Path,
    pub(super) database: &'a Database,
}

impl Reading<'_> {
    pub(super) fn book(&self, limits: Limits, now: Millis) -> Result<(Book, u64), StoreError> {
        let mut book = Book::new(limits, now);
        let transaction = self.ok(self.database.begin_read())?;
        let meta = self.ok(transaction.open_table(META))?;
        let number = |key: &'static str| -> Result<u64, StoreError> {
            let value = self.ok(meta.get(key))?.map(|value| value.value());
            value.ok_or_else(|| self.damaged(format!("meta {key}")))
        };
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
