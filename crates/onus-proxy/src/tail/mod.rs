//! The access log while it happens: a line for each attempt to whoever reads, within bounds.
//!
//! A reader that is slow misses lines and is told how many; nobody waits for it.

mod filter;
mod lines;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Serialize, Serializer};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tracing::Level;

pub(crate) use self::filter::Filter;
pub(crate) use self::lines::Lines;

/// Where lines go: to the log, if that asks for `onus::access`, and to all who read.
pub(crate) struct AccessLog {
    service: Arc<str>,
    readers: Mutex<Vec<Arc<Reader>>>,
    /// How many there are, as each attempt asks.
    count: AtomicUsize,
    missed: AtomicU64,
}

/// An attempt that has ended.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    /// When, in milliseconds since 1970.
    pub(crate) at: u64,
    #[serde(serialize_with = "text")]
    pub(crate) service: Arc<str>,
    #[serde(serialize_with = "text")]
    pub(crate) callee: Arc<str>,
    /// The address that was asked; empty where none was.
    pub(crate) instance: String,
    pub(crate) attempt: u32,
    pub(crate) method: String,
    pub(crate) path: String,
    /// 0 where there was no answer.
    pub(crate) status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) grpc_status: Option<u16>,
    /// Until the head of the answer; where trailers say how it ended, until these.
    pub(crate) ms: u64,
    /// `open`, `closed`, or empty where no claim says so.
    pub(crate) retry: &'static str,
    pub(crate) cause: &'static str,
    pub(crate) origin: String,
    pub(crate) hops: u8,
    pub(crate) error: String,
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

/// Somebody who reads.
struct Reader {
    filter: Filter,
    lines: Sender<Arc<Line>>,
    /// Lines since the last one it got.
    missed: AtomicU64,
}

impl AccessLog {
    pub(crate) fn new(service: &str) -> Arc<Self> {
        Arc::new(Self {
            service: service.into(),
            readers: Mutex::default(),
            count: AtomicUsize::new(0),
            missed: AtomicU64::new(0),
        })
    }

    /// The service whose log it is.
    pub(crate) fn service(&self) -> &Arc<str> {
        &self.service
    }

    /// Whether anybody asks for lines.
    pub(crate) fn is_wanted(&self) -> bool {
        self.readers() > 0 || tracing::enabled!(target: "onus::access", Level::INFO)
    }

    /// How many read.
    pub(crate) fn readers(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Lines that readers were too slow for.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Writes a line.
    pub(crate) fn write(&self, line: Line) {
        tracing::info!(
            target: "onus::access",
            callee = &*line.callee,
            instance = line.instance,
            attempt = line.attempt,
            method = line.method,
            path = line.path,
            status = line.status,
            grpc_status = line.grpc_status,
            ms = line.ms,
            retry = line.retry,
            cause = line.cause,
            origin = line.origin,
            hops = line.hops,
            error = line.error,
        );
        if self.readers() == 0 {
            return;
        }
        let line = Arc::new(line);
        let readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for reader in readers.iter().filter(|reader| reader.filter.passes(&line)) {
            if reader.lines.try_send(line.clone()).is_err() {
                reader.missed.fetch_add(1, Ordering::Relaxed);
                self.missed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Lines from now on; `None` where too many read already.
    pub(crate) fn follow(self: &Arc<Self>, filter: Filter) -> Option<Lines> {
        let (reader, lines) = self.enter(filter)?;
        Some(Lines::new(self.clone(), reader, lines))
    }

    fn enter(&self, filter: Filter) -> Option<(Arc<Reader>, Receiver<Arc<Line>>)> {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        if readers.len() >= READERS_MAX {
            return None;
        }
        let (lines, receiver) = mpsc::channel(LINES_MAX);
        let reader = Arc::new(Reader { filter, lines, missed: AtomicU64::new(0) });
        readers.push(reader.clone());
        self.count.store(readers.len(), Ordering::Relaxed);
        Some((reader, receiver))
    }

    fn leave(&self, reader: &Arc<Reader>) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        readers.retain(|other| !Arc::ptr_eq(other, reader));
        self.count.store(readers.len(), Ordering::Relaxed);
    }
}

/// People and tools at one sidecar; more would share the processor with its requests.
pub(crate) const READERS_MAX: usize = 8;

/// What waits for one reader: a quarter of a second at 2,000 requests a second.
const LINES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(callee: &str) -> Line {
        Line {
            at: 0,
            service: "a".into(),
            callee: callee.into(),
            instance: String::new(),
            attempt: 1,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            status: 200,
            grpc_status: None,
            ms: 1,
            retry: "",
            cause: "",
            origin: String::new(),
            hops: 0,
            error: String::new(),
        }
    }

    #[test]
    fn a_slow_reader_misses_lines_and_no_other_does() {
        let log = AccessLog::new("a");
        let (slow, mut kept) = log.enter(Filter::default()).unwrap();
        let (quick, mut read) = log.enter(Filter::default()).unwrap();
        for _ in 0..LINES_MAX + 3 {
            log.write(line("b"));
            assert!(read.try_recv().is_ok());
        }
        assert_eq!(slow.missed.load(Ordering::Relaxed), 3);
        assert_eq!((quick.missed.load(Ordering::Relaxed), log.missed()), (0, 3));
        let mut left = 0;
        while kept.try_recv().is_ok() {
            left += 1;
        }
        assert_eq!(left, LINES_MAX);
    }

    #[test]
    fn readers_are_bounded_and_make_room_when_they_go() {
        let log = AccessLog::new("a");
        assert!(!log.is_wanted());
        let readers: Vec<_> =
            (0..READERS_MAX).map(|_| log.follow(Filter::default()).unwrap()).collect();
        assert!(log.follow(Filter::default()).is_none());
        drop(readers);
        assert_eq!(log.readers(), 0);
        assert!(log.follow(Filter::default()).is_some());
    }
}
