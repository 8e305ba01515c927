//! The thread that writes.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, MutexGuard, PoisonError, RwLockWriteGuard};

use onus_api::{Accepted, AuditEntry, Report};
use tokio::sync::mpsc;

use super::{CountedMinutes, Incoming, Job, NotStored, Shared};
use crate::book::{Arrival, Book};
use crate::clock::Millis;
use crate::config::AnalysisConfig;
use crate::last::LastPages;
use crate::orders::Change;
use crate::store::Store;

/// The most reports, and bytes of them, that are stored with one `fsync`.
const BATCH_REPORTS: usize = 256;
const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// The writing thread.
pub(super) struct Engine {
    pub(super) shared: Arc<Shared>,
    /// `None` after an error, until it can be opened again.
    pub(super) store: Option<Store>,
    /// When it was last tried to open it.
    pub(super) tried: Millis,
    /// Whether what agents are told is beside the store.
    pub(super) kept: bool,
}

/// How long a store is left alone that could not be used: to open it reads all of it.
const OPEN_AGAIN_MILLIS: u64 = 1_000;

impl Engine {
    pub(super) fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
        while let Some(job) = jobs.blocking_recv() {
            let mut batch = Vec::new();
            let mut next = Some(job);
            let mut bytes = 0;
            while let Some(job) = next {
                match job {
                    Job::Report(incoming) => {
                        bytes += incoming.text.len();
                        batch.push(*incoming);
                    }
                    Job::Change { changes, by, answer } => {
                        let done = self.change(&changes, &by, Millis::now());
                        let _ = answer.send(done.map_err(NotStored::Broken));
                    }
                    Job::Audit { most, answer } => {
                        let read = self.write(Millis::now(), |store, _| store.audit(most));
                        let _ = answer.send(read.map_err(NotStored::Broken));
                    }
                    Job::Windows { minutes, answer } => {
                        let read = self.windows(minutes);
                        let _ = answer.send(read.map_err(NotStored::Broken));
                    }
                    Job::Snapshot(answer) => {
                        let read = self.write(Millis::now(), |store, _| store.snapshot());
                        let _ = answer.send(read.map_err(NotStored::Broken));
                    }
                    Job::End(now) => self.end(now),
                    Job::Tick(now) => {
                        self.take(std::mem::take(&mut batch));
                        self.tick(now);
                    }
                    Job::Finish(answer) => {
                        self.take(std::mem::take(&mut batch));
                        self.checkpoint(Millis::now());
                        let _ = answer.send(());
                    }
                }
                let full = batch.len() >= BATCH_REPORTS || bytes >= BATCH_BYTES;
                next = if full { None } else { jobs.try_recv().ok() };
            }
            self.take(batch);
        }
    }

    /// Writes to the store. After an error it is closed: what is on disk then is not known, and
    /// the book is read anew, which holds all that was answered as stored.
    fn write<T>(
        &mut self,
        now: Millis,
        write: impl FnOnce(&mut Store, &Shared) -> Result<T, redb::Error>,
    ) -> Result<T, String> {
        if self.store.is_none() && now.saturating_sub(self.tried) >= OPEN_AGAIN_MILLIS {
            self.tried = now;
            let AnalysisConfig { data, limits, .. } = &self.shared.config;
            match Store::open(data, *limits, now) {
                Ok((store, book)) => {
                    tracing::info!("onus analysis: the store is used again");
                    *self.book_mut() = book;
                    self.store = Some(store);
                    self.set_broken(None);
                }
                Err(error) => self.set_broken(Some(error.with_causes())),
            }
        }
        let Some(store) = &mut self.store else {
            return Err(self.broken().clone().unwrap_or_default());
        };
        // Pages that were damaged under way may be taken for impossible.
        let shared = &self.shared;
        let done = catch_unwind(AssertUnwindSafe(|| write(store, shared)));
        let done = done.map_or_else(
            |_| Err("failed to use the store: a page is damaged".to_owned()),
            |done| done.map_err(|error| format!("failed to write the store: {error}")),
        );
        done.map_err(|why| {
            tracing::error!(
                why,
                "onus analysis: reports are refused until the store can be written"
            );
            self.store = None;
            self.set_broken(Some(why.clone()));
            why
        })
    }

    /// Stores reports with one `fsync`, counts them, and answers.
    fn take(&mut self, batch: Vec<Incoming>) {
        let Some(now) = batch.last().map(|incoming| incoming.arrived) else { return };
        let stored = self.write(now, |store, shared| {
            let news = news(&batch, &shared.book());
            let texts = batch.iter().zip(&news).filter(|(_, is_new)| **is_new);
            let texts = texts.map(|(incoming, _)| (incoming.arrived, &*incoming.text));
            if news.contains(&true) {
                store.log(texts)?;
            }
            Ok(())
        });
        let mut book = self.book_mut();
        for incoming in batch {
            let report = &incoming.report;
            let answer = match &stored {
                Err(why) => Err(NotStored::Broken(why.clone())),
                Ok(()) => {
                    let arrival = book.apply(report, incoming.arrived);
                    let (sequence, lost) =
                        book.standing(&report.service, &report.instance).unwrap_or_default();
                    Ok(Accepted { sequence, lost, repeated: arrival == Arrival::Repeated })
                }
            };
            // Whoever does not wait any more will send it again.
            let _ = incoming.answer.send(answer);
        }
    }

    fn change(&mut self, changes: &[Change], by: &str, now: Millis) -> Result<(), String> {
        let entries: Vec<_> = changes
            .iter()
            .map(|change| {
                let (action, subject, detail) = change.told();
                tracing::warn!(by, action, subject, detail, "onus analysis: said by an operator");
                let (by, action) = (by.to_owned(), action.to_owned());
                AuditEntry { at: now.0, by, action, subject, detail }
            })
            .collect();
        self.write(now, |store, _| store.change(changes, &entries))?;
        self.book_mut().change(changes);
        self.kept = false;
        self.shared.changes.send_modify(|changes| *changes += 1);
        Ok(())
    }

    /// Takes out what operators have said and that has ended.
    fn end(&mut self, now: Millis) {
        let ended = self.shared.book().said.expired(now);
        if !ended.is_empty() {
            // Where it cannot be written it ends all the same, by its time.
            let _ = self.change(&ended, "expiry", now);
        }
    }

    /// What is on disk, and what is not there yet.
    fn windows(&mut self, minutes: Range<u32>) -> Result<CountedMinutes, String> {
        self.write(Millis::now(), |store, shared| {
            let mut found = store.windows(minutes.clone())?;
            let book = shared.book();
            let fresh = book.windows.iter().filter(|(key, _)| minutes.contains(&key.minute));
            found.extend(fresh.map(|(&key, &counts)| (key, counts)));
            Ok(found)
        })
    }

    fn tick(&mut self, now: Millis) {
        self.end(now);
        self.kept &= !(self.store.is_some() && self.book_mut().tick(now));
        self.checkpoint(now);
        if !self.kept && self.store.is_some() {
            self.kept = true;
            let written = LastPages::write(&self.shared.config.data, &self.shared.book(), now);
            if let Err(error) = written {
                tracing::warn!(%error, "onus analysis: the last classes cannot be kept beside the store");
            }
        }
        self.shared.changes.send_modify(|changes| *changes += 1);
    }

    fn checkpoint(&mut self, now: Millis) {
        let written = self.write(now, |store, shared| store.checkpoint(&shared.book(), now));
        if written.is_ok() {
            self.book_mut().checkpointed();
        }
    }

    fn set_broken(&self, why: Option<String>) {
        *self.broken() = why;
    }

    fn broken(&self) -> MutexGuard<'_, Option<String>> {
        self.shared.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.shared.book.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Which of the reports have not been stored, nor come twice in the batch.
fn news(batch: &[Incoming], book: &Book) -> Vec<bool> {
    let mut last: HashMap<(&str, &str), u64> = HashMap::new();
    let is_new = |incoming: &Incoming| {
        let Report { service, instance, sequence, .. } = &incoming.report;
        let stored = || book.standing(service, instance).map_or(0, |it| it.0);
        (*sequence, stored())
    };
    batch
        .iter()
        .map(|incoming| {
            let key = (&*incoming.report.service, &*incoming.report.instance);
            let (sequence, stored) = is_new(incoming);
            let last = last.entry(key).or_insert(stored);
            let news = sequence > *last;
            *last = sequence.max(*last);
            news
        })
        .collect()
}
