//! The one thread that writes: reports to disk, then to the book; minutes to evidence.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;

use bytes::Bytes;
use onus_api::{Accepted, Report};
use tokio::sync::{mpsc, oneshot, watch};

use crate::book::{Arrival, Book};
use crate::clock::Millis;
use crate::config::AnalysisConfig;
use crate::store::{Store, StoreError};

/// The most reports, and bytes of them, that are stored with one `fsync`.
const BATCH_REPORTS: usize = 256;
const BATCH_BYTES: usize = 32 * 1024 * 1024;

/// The dependency analysis of one process.
#[derive(Clone, Debug)]
pub struct Analysis(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: AnalysisConfig,
    book: RwLock<Book>,
    jobs: mpsc::Sender<Job>,
    /// Rises with each tick and order, for whoever waits for classes.
    changes: watch::Sender<u64>,
    /// Why the store cannot be used; `None` while it can.
    broken: Mutex<Option<String>>,
}

enum Job {
    Report(Box<Incoming>),
    /// A minute is over.
    Tick(Millis),
    /// The process ends; answered when everything is on disk.
    Finish(oneshot::Sender<()>),
}

struct Incoming {
    report: Report,
    text: Bytes,
    arrived: Millis,
    answer: oneshot::Sender<Result<Accepted, NotStored>>,
}

/// Why a report is not stored. The agent keeps its counts and comes again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotStored {
    /// Too many wait.
    Busy,
    /// The store cannot be used, and why.
    Broken(String),
}

impl Analysis {
    /// Opens the store and starts. To be called on a tokio runtime.
    ///
    /// # Errors
    ///
    /// If the store cannot be used.
    pub fn start(config: AnalysisConfig) -> Result<Self, StoreError> {
        let now = Millis::now();
        let (store, book) = Store::open(&config.data, config.limits, now)?;
        let (jobs, incoming) = mpsc::channel(config.limits.waiting);
        let (changes, _) = watch::channel(0);
        let minute = config.minute;
        let shared = Arc::new(Shared {
            config,
            book: RwLock::new(book),
            jobs,
            changes,
            broken: Mutex::new(None),
        });
        let engine = Engine { shared: shared.clone(), store };
        let thread = thread::Builder::new().name("onus-analysis".into());
        let spawned = thread.spawn(move || engine.run(incoming));
        spawned.map_err(|source| StoreError::Folder { path: PathBuf::from("a thread"), source })?;
        let ticking = Arc::downgrade(&shared);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(minute).await;
                let Some(shared) = ticking.upgrade() else { return };
                if shared.jobs.send(Job::Tick(Millis::now())).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self(shared))
    }

    /// Stores and counts a report, once.
    pub(crate) async fn take(&self, report: Report, text: Bytes) -> Result<Accepted, NotStored> {
        let (answer, answered) = oneshot::channel();
        let incoming = Incoming { report, text, arrived: Millis::now(), answer };
        self.0.jobs.try_send(Job::Report(Box::new(incoming))).map_err(|_| NotStored::Busy)?;
        answered.await.unwrap_or(Err(NotStored::Busy))
    }

    /// Writes everything to disk; for the end of the process.
    pub async fn finish(&self) {
        let (answer, answered) = oneshot::channel();
        if self.0.jobs.send(Job::Finish(answer)).await.is_ok() {
            let _ = answered.await;
        }
    }

    /// Ends a minute before its time.
    #[doc(hidden)]
    pub async fn tick(&self) {
        let mut changes = self.changes();
        let _ = self.0.jobs.send(Job::Tick(Millis::now())).await;
        let _ = changes.changed().await;
    }

    pub(crate) fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.0.book.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub(crate) fn config(&self) -> &AnalysisConfig {
        &self.0.config
    }

    /// Why the store cannot be used; `None` while it can.
    pub(crate) fn broken(&self) -> Option<String> {
        self.0.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The writing thread.
struct Engine {
    shared: Arc<Shared>,
    store: Store,
}

impl Engine {
    fn run(mut self, mut jobs: mpsc::Receiver<Job>) {
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

    /// Stores reports with one `fsync`, counts them, and answers.
    fn take(&mut self, batch: Vec<Incoming>) {
        if batch.is_empty() {
            return;
        }
        let news = self.news(&batch);
        let texts = batch.iter().zip(&news).filter(|(_, is_new)| **is_new);
        let texts = texts.map(|(incoming, _)| (incoming.arrived, &*incoming.text));
        let stored = match news.contains(&true) {
            true => self.store.log(texts),
            false => Ok(()),
        };
        self.note(stored.as_ref().err());
        let mut book = self.book_mut();
        for (incoming, is_new) in batch.into_iter().zip(news) {
            let answer = match &stored {
                Err(error) if is_new => Err(NotStored::Broken(error.to_string())),
                Ok(()) | Err(_) => {
                    let report = &incoming.report;
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

    /// Which of the reports have not been stored, nor come twice in the batch.
    fn news(&self, batch: &[Incoming]) -> Vec<bool> {
        let book = self.shared.book.read().unwrap_or_else(PoisonError::into_inner);
        let mut last: HashMap<(&str, &str), u64> = HashMap::new();
        batch
            .iter()
            .map(|incoming| {
                let Report { service, instance, sequence, .. } = &incoming.report;
                let stored = || book.standing(service, instance).map_or(0, |it| it.0);
                let last = last.entry((service, instance)).or_insert_with(stored);
                let news = sequence > last;
                *last = *sequence.max(last);
                news
            })
            .collect()
    }

    fn tick(&mut self, now: Millis) {
        self.book_mut().tick(now);
        self.checkpoint(now);
        self.shared.changes.send_modify(|changes| *changes += 1);
    }

    fn checkpoint(&mut self, now: Millis) {
        let done = {
            let book = self.shared.book.read().unwrap_or_else(PoisonError::into_inner);
            self.store.checkpoint(&book, now)
        };
        if done.is_ok() {
            self.book_mut().checkpointed();
        }
        self.note(done.as_ref().err());
    }

    fn note(&self, error: Option<&redb::Error>) {
        let mut broken = self.shared.broken.lock().unwrap_or_else(PoisonError::into_inner);
        match error {
            Some(error) if broken.is_none() => {
                tracing::error!(%error, "onus analysis: the store cannot be written; reports are refused");
            }
            None if broken.is_some() => tracing::info!("onus analysis: the store is written again"),
            Some(_) | None => {}
        }
        *broken = error.map(ToString::to_string);
    }

    fn book_mut(&self) -> RwLockWriteGuard<'_, Book> {
        self.shared.book.write().unwrap_or_else(PoisonError::into_inner)
    }
}
