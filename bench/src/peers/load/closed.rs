//! As fast as answers come: each line sends its next request when the last one was answered.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::call::Call;
use super::line::Line;
use super::tally::Tally;

/// Sends for this long. When it returns, nothing is on its way.
pub(crate) async fn run<L: Line>(lines: &mut Vec<L>, call: &Arc<Call>, time: Duration) -> Tally {
    let end = Instant::now() + time;
    let mut tasks: JoinSet<(L, Tally)> = JoinSet::new();
    for line in lines.drain(..) {
        tasks.spawn(send(line, call.clone(), end));
    }
    let mut all = Tally::new();
    while let Some(ended) = tasks.join_next().await {
        let (line, tally) = ended.expect("a line does not panic");
        lines.push(line);
        all.merge(tally);
    }
    all
}

async fn send<L: Line>(mut line: L, call: Arc<Call>, end: Instant) -> (L, Tally) {
    let mut tally = Tally::new();
    let mut sent = Instant::now();
    // A failed request voids the run; what the line would do next says nothing.
    while sent < end && tally.failed == 0 {
        let outcome = line.exchange(&call).await;
        let now = Instant::now();
        tally.add(outcome, now - sent);
        sent = now;
    }
    (line, tally)
}
