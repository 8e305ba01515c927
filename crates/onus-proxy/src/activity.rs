//! What happens on a connection of a client, for limits of time that cost a request nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::sleep;

use crate::busy::Guard;

/// What happens on a connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Requests that are not answered to the end.
    requests: AtomicU32,
    /// Counts beginnings and ends of requests.
    steps: AtomicU32,
    /// Counts looks at how the time passes.
    looks: AtomicU32,
    /// Whether something came since the last of them.
    received: AtomicBool,
    /// Whether the connection ends with its next answer.
    ends: AtomicBool,
}

/// Why a connection is closed that does nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lapse {
    /// It has no request.
    Idle,
    /// A request began and its head does not end.
    SlowHead,
}

/// A request of a connection, until its answer has been sent.
#[derive(Debug)]
pub(crate) struct Serving {
    activity: Arc<Activity>,
    _busy: Guard,
}

impl Activity {
    /// A request has arrived.
    pub(crate) fn request(self: &Arc<Self>, busy: Guard) -> Serving {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.step();
        Serving { activity: self.clone(), _busy: busy }
    }

    /// The connection ends with its next answer.
    pub(crate) fn end(&self) {
        self.ends.store(true, Ordering::Relaxed);
    }

    pub(crate) fn received(&self) {
        self.received.store(true, Ordering::Relaxed);
    }

    /// How often it was looked how the time passes.
    pub(crate) fn looks(&self) -> u32 {
        self.looks.load(Ordering::Relaxed)
    }

    /// Time has passed.
    pub(crate) fn look(&self) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    fn step(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.received.store(false, Ordering::Relaxed);
    }

    /// Ready when nothing has happened for too long: for `head` since something of a request came,
    /// where heads are looked at, else for `idle`. It looks now and then, and may be late by `every`.
    pub(crate) async fn lapses(
        &self,
        head: Option<Duration>,
        every: Duration,
        idle: Duration,
    ) -> Lapse {
        let mut seen = self.steps.load(Ordering::Relaxed);
        // Something had come when the connection began to be served.
        let (mut quiet, mut slow, mut had_received) = (Duration::ZERO, Duration::ZERO, true);
        loop {
            sleep(every).await;
            self.look();
            let steps = self.steps.load(Ordering::Relaxed);
            let is_quiet = steps == seen && self.requests.load(Ordering::Relaxed) == 0;
            seen = steps;
            quiet = if is_quiet { quiet + every } else { Duration::ZERO };
            let received = self.received.load(Ordering::Relaxed);
            // A head that began since the last look has the time from this one.
            slow = if is_quiet && received && had_received { slow + every } else { Duration::ZERO };
            had_received = received;
            match head.filter(|_| received) {
                Some(head) if slow >= head => return Lapse::SlowHead,
                None if quiet >= idle => return Lapse::Idle,
                Some(_) | None => {}
            }
        }
    }
}

impl Serving {
    /// Whether the connection ends with the answer.
    pub(crate) fn is_last(&self) -> bool {
        self.activity.ends.load(Ordering::Relaxed)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.activity.step();
        self.activity.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// The body of an answer, with what ends when it has been sent.
    pub(crate) struct Counted<R> {
        #[pin]
        body: R,
        _serving: Option<Serving>,
    }
}

impl<R> Counted<R> {
    pub(crate) fn new(body: R, serving: Option<Serving>) -> Self {
        Self { body, _serving: serving }
    }
}

impl<R: Body> Body for Counted<R> {
    type Data = R::Data;
    type Error = R::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<R::Data>, R::Error>>> {
        self.project().body.poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, advance};

    use super::*;
    use crate::busy::Busy;

    const HEAD: Duration = Duration::from_secs(10);
    const IDLE: Duration = Duration::from_secs(60);

    /// How a connection ends on which this happens, and after how many seconds.
    async fn check(happens: impl AsyncFnOnce(Arc<Activity>), ends: Lapse, after: u64) {
        let activity = Arc::new(Activity::default());
        let start = Instant::now();
        let watches = activity.clone();
        let watch = tokio::spawn(async move { watches.lapses(Some(HEAD), HEAD / 2, IDLE).await });
        tokio::task::yield_now().await;
        happens(activity).await;
        assert_eq!(watch.await.unwrap(), ends);
        assert_eq!(start.elapsed().as_secs(), after);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_that_does_nothing_or_does_not_end_its_head() {
        let request = |activity: &Arc<Activity>| activity.request(Busy::default().start());
        check(async |_| {}, Lapse::Idle, 60).await;
        check(async |activity| activity.received(), Lapse::SlowHead, 10).await;
        check(
            async |activity| {
                activity.received();
                let serving = request(&activity);
                // What comes of its body, or of the next request, is no slow head meanwhile.
                activity.received();
                advance(Duration::from_secs(300)).await;
                drop(serving);
            },
            Lapse::Idle,
            360,
        )
        .await;
        // However long it was idle before, the time of a head begins with the head.
        check(
            async |activity| {
                sleep(Duration::from_secs(52)).await;
                activity.received();
            },
            Lapse::SlowHead,
            65,
        )
        .await;
        check(
            async |activity| {
                sleep(Duration::from_secs(52)).await;
                activity.received();
                sleep(Duration::from_secs(4)).await;
                drop(request(&activity));
            },
            Lapse::Idle,
            120,
        )
        .await;
    }
}
