//! One instance of a callee.

use std::net::SocketAddr;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::PoolLimits;
use super::dial::Dial;
use super::http1::Http1;
use super::http2::Http2;

/// One instance of a callee, and the connections to it.
pub(crate) struct Endpoint<B> {
    pub(super) address: SocketAddr,
    /// By which calls remember it.
    pub(super) number: NonZeroU64,
    pub(super) dial: Dial,
    pub(super) limits: PoolLimits,
    pub(super) http1: Http1<B>,
    pub(super) http2: Http2<B>,
    /// How many sweeps it is still passed over for; see [`Self::is_failing`].
    failing: AtomicU32,
}

impl<B> Endpoint<B> {
    pub(super) fn new(address: SocketAddr, dial: Dial, limits: PoolLimits) -> Self {
        let (http1, http2) = (Http1::new(), Http2::new());
        let number = NonZeroU64::MIN.saturating_add(NUMBERS.fetch_add(1, Ordering::Relaxed));
        Self { address, number, dial, limits, http1, http2, failing: AtomicU32::new(0) }
    }

    /// No connection could be made: others are asked first for some time.
    pub(super) fn fails(&self) {
        self.failing.store(FAILING_SWEEPS, Ordering::Relaxed);
    }

    pub(super) fn works(&self) {
        if self.is_failing() {
            self.failing.store(0, Ordering::Relaxed);
        }
    }

    /// Whether others are to be asked first.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed) > 0
    }

    /// Runs once in a while.
    pub(super) fn sweep(&self) {
        let less = |failing: u32| failing.checked_sub(1);
        let _ = self.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        self.http1.sweep();
        self.http2.sweep();
    }
}

/// Until the second sweep from now.
const FAILING_SWEEPS: u32 = 2;

/// How many instances there have been in this process.
static NUMBERS: AtomicU64 = AtomicU64::new(0);
