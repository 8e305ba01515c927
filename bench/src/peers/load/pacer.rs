//! Waits that are exact to the microsecond; the timer of the runtime knows milliseconds.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::unix::AsyncFd;
use tokio::time::Instant;

/// A timer of the kernel.
#[derive(Debug)]
pub(crate) struct Pacer(AsyncFd<OwnedFd>);

impl Pacer {
    /// # Errors
    ///
    /// Where the kernel has none to give.
    #[expect(
        deprecated,
        reason = "it warns of descriptors that somebody else closes; this one has an owner"
    )]
    pub(crate) fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        Ok(Self(AsyncFd::new(timer)?))
    }

    /// Waits until `at`; not at all where that is over.
    pub(crate) async fn until(&self, at: Instant) -> io::Result<()> {
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let once = Timespec::try_from(left).map_err(io::Error::other)?;
        let when = Itimerspec { it_interval: zero, it_value: once };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &when)?;
        loop {
            let mut ready = self.0.readable().await?;
            let mut expirations = [0; 8];
            let read = |timer: &AsyncFd<OwnedFd>| {
                rustix::io::read(timer, &mut expirations).map_err(io::Error::from)
            };
            match ready.try_io(read) {
                Ok(read) => return read.map(|_| ()),
                Err(_would_block) => {}
            }
        }
    }
}
