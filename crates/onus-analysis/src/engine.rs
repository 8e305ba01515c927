//! The one thread that writes: reports to disk, then to the book; minutes to evidence.

use std::collections::HashMap;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak,
};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use onus_api::{Accepted, AuditEntry, ClassPage, EdgeCounts, Report};
use redb::ReadTransaction;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};

use crate::access::Access;
use crate::book::{Arrival, Book};
use crate::classes;
use crate::clock::Millis;
use crate::config::AnalysisConfig;
use crate::last::LastPages;
use crate::metrics::Reports;
use crate::orders::Change;
use crate::overrides_file::{self, Watched};
use crate::promql::{BACK_MAX, Source};
use crate::store::{Copied, Store, StoreError};
use crate::window::WindowKey;

/// The most reports, and bytes of them, that are stored with one `fsync`.
const BATCH_REPORTS: usize = 256;
const BATCH_BYTES: usize = 32 * 1024 * 1024;

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
        tokio::spawn(end_in_time(Arc::downgrade(&shared)));
        tokio::spawn(follow_overrides(Arc::downgrade(&shared)));
        if let Some(store) = shared.config.promql.clone() {
            let source = Source::new(store, minute, shared.config.shard.clone());
            tokio::spawn(follow(source, Arc::downgrade(&shared)));
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

/// Wakes the engine when something ends that operators have said, so that agents are told in time.
async fn end_in_time(shared: Weak<Shared>) {
    loop {
        let Some(analysis) = shared.upgrade() else { return };
        let mut changes = analysis.changes.subscribe();
        let now = Millis::now();
        let next = analysis.book().said.next_end(now);
        let jobs = analysis.jobs.clone();
        drop(analysis);
        let end = async {
            match next {
                Some(end) => {
                    tokio::time::sleep(Duration::from_millis(end.saturating_sub(now))).await;
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = end => if jobs.send(Job::End(Millis::now())).await.is_err() { return },
        }
    }
}

/// Lets the overrides of the file hold that the configuration names; where it names none, none of
/// an earlier one does.
async fn follow_overrides(shared: Weak<Shared>) {
    let path = shared.upgrade().and_then(|shared| shared.config.overrides.clone());
    let by = path.as_ref().map_or_else(
        || "a configuration without an overrides file".to_owned(),
        |path| path.display().to_string(),
    );
    let mut watched = path.map(Watched::new);
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            let look = watched.as_mut().map_or(Some(Ok(Vec::new())), Watched::look);
            (watched, look)
        });
        let Ok((back, look)) = looked.await else { return };
        watched = back;
        let Some(analysis) = shared.upgrade().map(Analysis) else { return };
        let mut done = true;
        match look {
            None => {}
            Some(Ok(asked)) => {
                let changes = {
                    let overrides = &analysis.book().said.overrides;
                    overrides_file::changes(overrides, asked, Millis::now())
                };
                let held = match changes {
                    Ok(changes) if changes.is_empty() => Ok(()),
                    Ok(changes) => {
                        analysis.change(changes, by.clone()).await.map_err(|why| format!("{why:?}"))
                    }
                    Err(why) => Err(why),
                };
                done = held.is_ok();
                if let Err(why) = held {
                    tracing::warn!(why, "onus analysis: the overrides of the file do not hold yet");
                }
                analysis.0.overrides_file_usable.store(true, Ordering::Relaxed);
            }
            Some(Err(error)) => {
                let why = error.with_causes();
                tracing::error!(
                    why,
                    "onus analysis: the overrides file cannot be used; what it said before holds"
                );
                analysis.0.overrides_file_usable.store(false, Ordering::Relaxed);
            }
        }
        drop(analysis);
        match &mut watched {
            None if done => return,
            Some(watched) if !done => watched.forget(),
            None | Some(_) => {}
        }
        tokio::time::sleep(overrides_file::LOOK).await;
    }
}

/// Reads minutes back from a PromQL store for as long as the analysis runs.
async fn follow(source: Source, shared: Weak<Shared>) {
    let mut done = None;
    loop {
        let Some(analysis) = shared.upgrade().map(Analysis) else { return };
        let last = source.last(Millis::now());
        // After a restart it goes on where it was, but not from the beginning of time.
        let before = *done.get_or_insert_with(|| analysis.book().last_promql_minute());
        let first =
            if before == 0 { last } else { (before + 1).max(last.saturating_sub(BACK_MAX)) };
        for number in first..=last {
            match analysis.take_minute(&source, number).await {
                Ok(()) => done = Some(number),
                Err(why) => {
                    tracing::warn!(
                        why,
                        number,
                        "onus analysis: a minute cannot be read from the store; it is read later"
                    );
                    break;
                }
            }
        }
        let pause = analysis.config().minute / 4;
        drop(analysis);
        tokio::time::sleep(pause).await;
    }
}

/// The writing thread.
struct Engine {
    shared: Arc<Shared>,
    /// `None` after an error, until it can be opened again.
    store: Option<Store>,
    /// When it was last tried to open it.
    tried: Millis,
    /// Whether what agents are told is beside the store.
    kept: bool,
}

/// How long a store is left alone that could not be used: to open it reads all of it.
const OPEN_AGAIN_MILLIS: u64 = 1_000;

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

impl Shared {
    fn book(&self) -> RwLockReadGuard<'_, Book> {
        self.book.read().unwrap_or_else(PoisonError::into_inner)
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
