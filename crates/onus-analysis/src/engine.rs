//! The one thread that writes: reports to disk, then to the book; minutes to evidence. And the handle
//! of all that ask it.

mod tasks;
mod writer;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::thread;

use bytes::Bytes;
use onus_api::{Accepted, AuditEntry, ClassPage, EdgeCounts, Report};
use redb::ReadTransaction;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use self::writer::Engine;
use crate::access::Access;
use crate::book::Book;
use crate::classes;
use crate::clock::Millis;
use crate::config::AnalysisConfig;
use crate::last::LastPages;
use crate::metrics::Reports;
use crate::orders::Change;
use crate::promql::Source;
use crate::store::{Copied, Store, StoreError};
use crate::window::WindowKey;

/// The dependency analysis of one process.
#[derive(Clone, Debug)]
pub struct Analysis(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: AnalysisConfig,
    access: Access,
    reports: Reports,
    book: RwLock<Book>,
    jobs: mpsc::Sender<Job>,
    /// Rises with each tick and order, for whoever waits for classes.
    changes: watch::Sender<u64>,
    /// Why the store cannot be used; `None` while it can.
    broken: Mutex<Option<String>>,
    /// One copy of the store is made at a time.
    copying: Arc<Semaphore>,
    /// Whether the overrides file could be read when it was last looked at.
    overrides_file_usable: AtomicBool,
    /// What agents were last told, where the store could not be read at the start.
    last: LastPages,
}

/// Minutes of edges, with what was counted in them; one may be there twice.
type CountedMinutes = Vec<(WindowKey, EdgeCounts)>;

enum Job {
    Report(Box<Incoming>),
    /// An operator says something.
    Change {
        changes: Vec<Change>,
        by: String,
        answer: oneshot::Sender<Result<(), NotStored>>,
    },
    /// The newest lines of the audit log are asked for.
    Audit {
        most: usize,
        answer: oneshot::Sender<Result<Vec<AuditEntry>, NotStored>>,
    },
    /// Minutes with failures are asked for.
    Windows {
        minutes: Range<u32>,
        answer: oneshot::Sender<Result<CountedMinutes, NotStored>>,
    },
    /// A copy of the store is asked for.
    Snapshot(oneshot::Sender<Result<ReadTransaction, NotStored>>),
    /// Something that an operator said ends now.
    End(Millis),
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
        let (store, book, broken) = match Store::open(&config.data, config.limits, now) {
            Ok((store, book)) => (Some(store), book, None),
            Err(error) if error.is_mistake() => return Err(error),
            Err(error) => {
                let why = error.with_causes();
                tracing::error!(
                    why,
                    "onus analysis: reports are refused; the last classes are served"
                );
                (None, Book::new(config.limits, now), Some(why))
            }
        };
        let last =
            if broken.is_some() { LastPages::read(&config.data) } else { LastPages::default() };
        let (jobs, incoming) = mpsc::channel(config.limits.waiting);
        let (changes, _) = watch::channel(0);
        let minute = config.minute;
        let shared = Arc::new(Shared {
            reports: Reports::default(),
            access: Access::new(config.grants.clone()),
            config,
            book: RwLock::new(book),
            jobs,
            changes,
            broken: Mutex::new(broken),
            copying: Arc::new(Semaphore::new(1)),
            overrides_file_usable: AtomicBool::new(true),
            last,
        });
        let engine = Engine { shared: shared.clone(), store, tried: now, kept: true };
        let thread = thread::Builder::new().name("onus-analysis".into());
        let spawned = thread.spawn(move || engine.run(incoming));
        spawned.map_err(|source| StoreError::Folder { path: PathBuf::from("a thread"), source })?;
        let ticking = Arc::downgrade(&shared);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(minute).await;
                let Some(shared) = ticking.upgrade() else { return };
                shared.access.read_again();
                if shared.jobs.send(Job::Tick(Millis::now())).await.is_err() {
                    return;
                }
            }
        });
        tokio::spawn(tasks::end_in_time(Arc::downgrade(&shared)));
        tokio::spawn(tasks::follow_overrides(Arc::downgrade(&shared)));
        if let Some(store) = shared.config.promql.clone() {
            let source = Source::new(store, minute, shared.config.shard.clone());
            tokio::spawn(tasks::follow(source, Arc::downgrade(&shared)));
        }
        Ok(Self(shared))
    }

    /// Stores and counts a report, once.
    pub(crate) async fn take(&self, report: Report, text: Bytes) -> Result<Accepted, NotStored> {
        let (answer, answered) = oneshot::channel();
        let incoming = Incoming { report, text, arrived: Millis::now(), answer };
        self.0.jobs.try_send(Job::Report(Box::new(incoming))).map_err(|_| NotStored::Busy)?;
        answered.await.unwrap_or(Err(NotStored::Busy))
    }

    /// Reads a minute from a PromQL store and counts it.
    async fn take_minute(&self, source: &Source, number: u64) -> Result<(), String> {
        for report in source.read(number).await? {
            let text = serde_json::to_vec(&report).map_err(|error| error.to_string())?;
            let taken = self.take(report, Bytes::from(text)).await;
            taken.map_err(|why| format!("{why:?}"))?;
        }
        Ok(())
    }

    /// Writes down what an operator says, and who, and lets it hold.
    pub(crate) async fn change(&self, changes: Vec<Change>, by: String) -> Result<(), NotStored> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Change { changes, by, answer };
        self.0.jobs.try_send(job).map_err(|_| NotStored::Busy)?;
        answered.await.unwrap_or(Err(NotStored::Busy))
    }

    /// The newest lines of the audit log.
    pub(crate) async fn audit(&self, most: usize) -> Result<Vec<AuditEntry>, NotStored> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Audit { most, answer };
        self.0.jobs.try_send(job).map_err(|_| NotStored::Busy)?;
        answered.await.unwrap_or(Err(NotStored::Busy))
    }

    /// The minutes with failures in a range of time.
    pub(crate) async fn windows(&self, minutes: Range<u32>) -> Result<CountedMinutes, NotStored> {
        let (answer, answered) = oneshot::channel();
        let job = Job::Windows { minutes, answer };
        self.0.jobs.try_send(job).map_err(|_| NotStored::Busy)?;
        answered.await.unwrap_or(Err(NotStored::Busy))
    }

    /// A copy of the store as it is now; one at a time. Reports are stored meanwhile.
    pub(crate) async fn backup(&self) -> Result<(Copied, OwnedSemaphorePermit), NotStored> {
        let copying = self.0.copying.clone();
        let permit = copying.try_acquire_owned().map_err(|_| NotStored::Busy)?;
        let (answer, answered) = oneshot::channel();
        self.0.jobs.try_send(Job::Snapshot(answer)).map_err(|_| NotStored::Busy)?;
        let snapshot = answered.await.unwrap_or(Err(NotStored::Busy))?;
        let folder = self.config().data.clone();
        let copied = tokio::task::spawn_blocking(move || Copied::of(&snapshot, &folder)).await;
        match copied {
            Ok(Ok(copied)) => Ok((copied, permit)),
            Ok(Err(error)) => Err(NotStored::Broken(format!("failed to copy the store: {error}"))),
            Err(_) => Err(NotStored::Broken("failed to copy the store".to_owned())),
        }
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
        self.0.book()
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.0.changes.subscribe()
    }

    pub(crate) fn reports(&self) -> &Reports {
        &self.0.reports
    }

    pub(crate) fn access(&self) -> &Access {
        &self.0.access
    }

    pub(crate) fn config(&self) -> &AnalysisConfig {
        &self.0.config
    }

    /// What the agents of a service are told.
    pub(crate) fn class_page(&self, service: &str) -> ClassPage {
        let now = Millis::now();
        match self.0.last.of(service).filter(|_| self.broken().is_some()) {
            Some(page) => {
                let mut page = page.clone();
                page.end_by(now.0);
                page
            }
            None => classes::page(&self.book(), service, now),
        }
    }

    /// Whether the overrides file could be read, where there is one.
    pub(crate) fn overrides_file_usable(&self) -> Option<bool> {
        let usable = || self.0.overrides_file_usable.load(Ordering::Relaxed);
        self.config().overrides.is_some().then(usable)
    }

    /// Why the store cannot be used; `None` while it can.
    pub(crate) fn broken(&self) -> Option<String> {
        self.0.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
    }
}
