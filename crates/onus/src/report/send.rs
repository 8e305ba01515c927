//! The task that reports.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::admin::millis;
use super::client::{Client, Reported};
use super::ledger::Ledger;
use super::metrics::Standing;
use crate::onus::WeakOnus;

/// How often it is looked whether an edge starts to fail.
const LOOK: Duration = Duration::from_secs(1);
const BACKOFF_MIN: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);

/// Reports until the service's last handle is gone, or until it is told to end.
pub(crate) async fn run(
    onus: WeakOnus,
    client: Client,
    interval: Duration,
    standing: Arc<Standing>,
    mut ends: watch::Receiver<bool>,
) {
    let mut ledger = Ledger::new();
    let mut due = Instant::now() + interval;
    let mut backoff = Backoff::default();
    loop {
        // Whoever drops the reporter lets it go on.
        let ending = tokio::select! {
            () = tokio::time::sleep(LOOK) => false,
            Ok(_) = ends.wait_for(|&ends| ends) => true,
        };
        let Some(onus) = onus.upgrade() else { return };
        let agent = onus.agent();
        agent.tick(onus.clock().now());
        let regular = Instant::now() >= due || ending;
        if !(ending || backoff.is_over() && (regular || ledger.is_news(agent))) {
            continue;
        }
        let mut always = regular;
        // There is no later for a process that ends: it tries a second time at once.
        let mut again = ending;
        loop {
            let now = onus.clock().now();
            let Some(report) = ledger.next(agent, now, millis(&onus), always) else { break };
            always = false;
            match client.report(report).await {
                Reported::Stored(accepted) => {
                    standing.stored(accepted.repeated);
                    ledger.settled();
                    backoff.reset();
                }
                Reported::Refused(why) => {
                    tracing::warn!(
                        why,
                        "onus: the analysis refuses a report; its counts are lost to it"
                    );
                    standing.refused();
                    ledger.settled();
                }
                Reported::Later { why, after } => {
                    if backoff.is_first() {
                        tracing::warn!(why, "onus: the analysis takes no report; counts are kept");
                    }
                    standing.failed();
                    if std::mem::take(&mut again) {
                        continue;
                    }
                    backoff.wait(after);
                    break;
                }
            }
        }
        due = Instant::now() + interval;
        if ending {
            return;
        }
    }
}

/// How long a report waits that found nobody.
#[derive(Default)]
struct Backoff {
    next: Option<Duration>,
    until: Option<Instant>,
}

impl Backoff {
    fn is_first(&self) -> bool {
        self.next.is_none()
    }

    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    fn reset(&mut self) {
        *self = Self::default();
    }

    /// Waits at least as long as asked, and never longer than the maximum.
    fn wait(&mut self, asked: Option<Duration>) {
        let step = self.next.unwrap_or(BACKOFF_MIN);
        self.next = Some((step * 2).min(BACKOFF_MAX));
        let jittered = step.mul_f64(0.5 + 0.5 * fastrand::f64());
        self.until =
            Some(Instant::now() + jittered.max(asked.unwrap_or_default()).min(BACKOFF_MAX));
    }
}
