//! At a rate, whatever the answers do: latency counts from when a request was to be sent.
//!
//! A client that waits for an answer before it sends the next request asks a stalled server little,
//! and so sees little of the stall. Here requests that find no free line wait for one, and their
//! wait is part of their latency.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::call::Call;
use super::line::Line;
use super::tally::Tally;

/// Sends one request at each of these times from now; `until` waits for a point in time. When it
/// returns, nothing is on its way.
pub(crate) async fn run<L, F>(
    lines: &mut Vec<L>,
    call: &Arc<Call>,
    times: impl Iterator<Item = Duration>,
    mut until: impl FnMut(Instant) -> F,
) -> io::Result<Tally>
where
    L: Line,
    F: Future<Output = io::Result<()>>,
{
    let free = Arc::new(Free {
        permits: Semaphore::new(lines.len()),
        lines: Mutex::new(std::mem::take(lines)),
        tally: Mutex::new(Tally::new()),
    });
    let start = Instant::now();
    let mut sending = JoinSet::new();
    for time in times {
        let intended = start + time;
        until(intended).await?;
        sending.spawn(send(free.clone(), call.clone(), intended));
        while sending.try_join_next().is_some() {}
    }
    while sending.join_next().await.is_some() {}
    let free = Arc::into_inner(free).ok_or_else(|| io::Error::other("a request is still sent"))?;
    *lines = free.lines.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(free.tally.into_inner().unwrap_or_else(PoisonError::into_inner))
}

async fn send<L: Line>(free: Arc<Free<L>>, call: Arc<Call>, intended: Instant) {
    // First come, first served.
    let Ok(_permit) = free.permits.acquire().await else { return };
    let Some(mut line) = free.lines().pop() else { return };
    let outcome = line.exchange(&call).await;
    let latency = intended.elapsed();
    free.lines().push(line);
    free.tally.lock().unwrap_or_else(PoisonError::into_inner).add(outcome, latency);
}

/// The lines on which nothing is sent.
struct Free<L> {
    permits: Semaphore,
    lines: Mutex<Vec<L>>,
    tally: Mutex<Tally>,
}

impl<L> Free<L> {
    fn lines(&self) -> std::sync::MutexGuard<'_, Vec<L>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{sleep, sleep_until};

    use super::*;
    use crate::peers::connection::Protocol;
    use crate::peers::load::call::{Miss, Shape};
    use crate::peers::load::closed;

    /// A server that answers in 1 ms, but stands still for a second from its 100th request on.
    struct Stalling(u32);

    impl Line for Stalling {
        async fn exchange(&mut self, _: &Call) -> Result<(), Miss> {
            self.0 += 1;
            sleep(Duration::from_millis(if self.0 == 100 { 1_000 } else { 1 })).await;
            Ok(())
        }
    }

    fn call() -> Arc<Call> {
        let shape = Shape::Get { status: 200, length: 0 };
        Arc::new(Call { protocol: Protocol::Http1, path: "/", shape, is_claimed: false })
    }

    async fn until(at: Instant) -> io::Result<()> {
        sleep_until(at).await;
        Ok(())
    }

    #[tokio::test(start_paused = true)]
    async fn a_stall_is_seen_by_the_requests_that_were_due_in_it() {
        let every_5_ms = (0..2_000).map(|n| Duration::from_millis(5 * n));
        let mut lines = vec![Stalling(0)];
        let tally = run(&mut lines, &call(), every_5_ms, until).await.unwrap();
        assert_eq!((tally.completed, tally.failed, lines.len()), (2_000, 0, 1));
        // 1,000 ms of stall are worked off at 1 in 1 ms while 1 in 5 ms comes: about 250 of 2,000
        // requests waited.
        let p99 = tally.quantile_us(0.99);
        assert!((800_000.0..1_000_000.0).contains(&p99), "{p99}");
        assert!(tally.quantile_us(0.5) < 3_000.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_closed_loop_does_not_see_it() {
        let mut lines = vec![Stalling(0)];
        let tally = closed::run(&mut lines, &call(), Duration::from_secs(10)).await;
        assert!(tally.completed > 4_000, "{}", tally.completed);
        assert!(tally.quantile_us(0.99) < 3_000.0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_fails_is_counted_apart() {
        struct Failing;
        impl Line for Failing {
            async fn exchange(&mut self, _: &Call) -> Result<(), Miss> {
                Err(Miss::Status(500))
            }
        }
        let times = (0..3).map(Duration::from_millis);
        let tally = run(&mut vec![Failing], &call(), times, until).await.unwrap();
        assert_eq!((tally.completed, tally.failed), (0, 3));
        assert_eq!(tally.first_miss, Some(Miss::Status(500)));
    }
}
