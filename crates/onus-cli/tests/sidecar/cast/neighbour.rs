//! A client that wants nothing but its answers, beside others that misbehave.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::Line;

/// A client that asks again as soon as it is answered.
pub(crate) struct Neighbour {
    leave: oneshot::Sender<()>,
    asks: JoinHandle<Vec<Duration>>,
}

impl Neighbour {
    /// Asks at `address` until it is told to leave.
    pub(crate) fn at(address: SocketAddr) -> Self {
        let (leave, mut left) = oneshot::channel();
        let asks = tokio::spawn(async move {
            let mut line = Line::to(address).await;
            let mut waits = Vec::new();
            while left.try_recv().is_err() {
                let begun = Instant::now();
                line.say("GET /neighbour HTTP/1.1\r\nhost: peer\r\n\r\n").await;
                let head = timeout(WAIT_MAX, line.head()).await.expect("an answer in time");
                assert_eq!(head.expect("an answer").status(), 200);
                waits.push(begun.elapsed());
            }
            waits
        });
        Self { leave, asks }
    }

    /// Leaves; how often it was answered, each time with 200 and soon enough.
    pub(crate) async fn leaves(self) -> usize {
        // One that has panicked says why below.
        let _ = self.leave.send(());
        let mut waits = self.asks.await.expect("it was served");
        waits.sort_unstable();
        let median = waits.get(waits.len() / 2).copied().unwrap_or_default();
        assert!(median < MEDIAN_MAX, "{} answers, half of them within {median:?}", waits.len());
        waits.len()
    }
}

/// The longest that an answer may take, on a machine that has other work.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// And half of the answers.
const MEDIAN_MAX: Duration = Duration::from_secs(2);
