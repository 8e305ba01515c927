//! How much memory replay may hold: per request, and in all requests together.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What replay may hold. Clones share one memory.
#[derive(Clone, Debug)]
pub struct ReplayLimits {
    per_request: usize,
    memory: Arc<Memory>,
}

impl ReplayLimits {
    /// Bytes that one request may keep when nothing else is said: the size up to which a body is
    /// a message and not an upload, as in the proxies people already run.
    pub const PER_REQUEST_DEFAULT: usize = 64 * 1024;

    /// Bytes that all requests together may keep when nothing else is said: a thousand full
    /// request bodies in flight.
    pub const TOTAL_DEFAULT: usize = 64 * 1024 * 1024;

    /// Limits of `per_request` bytes for one request and `total` bytes for all that share them.
    pub fn new(per_request: usize, total: usize) -> Self {
        Self { per_request, memory: Arc::new(Memory { total, in_use: AtomicUsize::new(0) }) }
    }

    /// The same memory with another limit for one request.
    #[must_use]
    pub fn with_per_request(&self, per_request: usize) -> Self {
        Self { per_request, memory: Arc::clone(&self.memory) }
    }

    /// Bytes that one request may keep.
    pub fn per_request(&self) -> usize {
        self.per_request
    }

    /// Bytes that all requests together may keep.
    pub fn total(&self) -> usize {
        self.memory.total
    }

    /// Bytes that are kept at the moment.
    pub fn in_use(&self) -> usize {
        self.memory.in_use.load(Ordering::Relaxed)
    }

    /// A reservation of nothing yet, for one request.
    pub(super) fn open(&self) -> Reservation {
        Reservation { memory: Arc::clone(&self.memory), bytes: 0 }
    }
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self::new(Self::PER_REQUEST_DEFAULT, Self::TOTAL_DEFAULT)
    }
}

#[derive(Debug)]
struct Memory {
    total: usize,
    // A count and nothing else: no other memory is published through it, so relaxed is enough.
    in_use: AtomicUsize,
}

/// The share of one request in the memory; dropping it gives the share back.
#[derive(Debug)]
pub(super) struct Reservation {
    memory: Arc<Memory>,
    bytes: usize,
}

impl Reservation {
    /// Takes `bytes` more, or nothing when the memory has no room for all of them.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let total = self.memory.total;
        let room = |in_use: usize| in_use.checked_add(bytes).filter(|sum| *sum <= total);
        let granted =
            self.memory.in_use.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok();
        if granted {
            self.bytes += bytes;
        }
        granted
    }

    /// Gives `bytes` back, at most what is held.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.memory.in_use.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_never_pass_the_total_and_come_back() {
        let limits = ReplayLimits::new(10, 100);
        let (mut a, mut b) = (limits.open(), limits.with_per_request(1).open());
        let check = |granted: bool, expected: bool, in_use: usize| {
            assert_eq!(granted, expected);
            assert_eq!(limits.in_use(), in_use);
        };

        check(a.grow(60), true, 60);
        check(b.grow(41), false, 60);
        check(b.grow(40), true, 100);
        check(a.grow(1), false, 100);
        check(a.grow(usize::MAX), false, 100);
        a.shrink(10);
        check(b.grow(10), true, 100);
        a.shrink(usize::MAX);
        check(true, true, 50);
        drop(b);
        check(a.grow(100), true, 100);
        drop(a);
        check(true, true, 0);
    }

    #[test]
    fn clones_share_one_memory_and_defaults_do_not() {
        let limits = ReplayLimits::default();
        let mut held = limits.clone().open();
        assert!(held.grow(7));

        assert_eq!(limits.in_use(), 7);
        assert_eq!(ReplayLimits::default().in_use(), 0);
        assert_eq!((limits.per_request(), limits.total()), (65_536, 67_108_864));
    }
}
