//! How much is under way, and when it has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::timeout;

/// Counts what is under way.
#[derive(Clone, Debug, Default)]
pub(crate) struct Busy(Arc<State>);

#[derive(Debug, Default)]
struct State {
    count: AtomicUsize,
    none: Notify,
}

/// One thing that is under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct Guard(Arc<State>);

impl Busy {
    /// Something starts.
    pub(crate) fn start(&self) -> Guard {
        self.count_up().1
    }

    /// Something starts, if there is less than `max` under way.
    pub(crate) fn try_start(&self, max: usize) -> Option<Guard> {
        let (before, guard) = self.count_up();
        (before < max).then_some(guard)
    }

    /// Also how much was under way before: two that start at once are not both beyond a limit.
    fn count_up(&self) -> (usize, Guard) {
        let before = self.0.count.fetch_add(1, Ordering::Relaxed);
        (before, Guard(self.0.clone()))
    }

    /// How much is under way.
    pub(crate) fn count(&self) -> usize {
        self.0.count.load(Ordering::Relaxed)
    }

    /// Ready when nothing is.
    pub(crate) async fn idle(&self) {
        loop {
            let none = self.0.none.notified();
            if self.count() == 0 {
                return;
            }
            none.await;
        }
    }

    /// Ready when nothing is, and nothing has been for this long.
    pub(crate) async fn quiet(&self, period: Duration) {
        loop {
            self.idle().await;
            // What starts and ends within the period is heard of too.
            let again = self.0.none.notified();
            if timeout(period, again).await.is_err() && self.count() == 0 {
                return;
            }
        }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.0.count.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.none.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_is_idle_when_the_last_has_ended() {
        let busy = Busy::default();
        busy.idle().await;
        let (one, two) = (busy.start(), busy.try_start(2).unwrap());
        assert!(busy.try_start(2).is_none());
        assert_eq!(busy.count(), 2);
        let waits = busy.clone();
        let waits = tokio::spawn(async move { waits.idle().await });
        tokio::task::yield_now().await;
        drop(one);
        tokio::task::yield_now().await;
        assert!(!waits.is_finished());
        drop(two);
        waits.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn it_is_quiet_when_nothing_was_there_for_a_while() {
        let busy = Busy::default();
        let second = Duration::from_secs(1);
        let begun = tokio::time::Instant::now();
        let other = busy.clone();
        tokio::spawn(async move {
            tokio::time::sleep(second / 2).await;
            drop(other.start());
            tokio::time::sleep(second / 2).await;
            let long = other.start();
            tokio::time::sleep(second * 3).await;
            drop(long);
        });
        busy.quiet(second).await;
        assert_eq!(begun.elapsed(), second * 5);
    }
}
