//! The task that follows classes and orders.

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onus_agent::{EdgeName, GivenClass, Source, Switches};
use onus_api::{ClassPage, EdgeClassEntry, SwitchOrder, Word};
use tokio::sync::watch;
use tokio::time::Instant;

use super::client::{Client, Handed};
use super::kept;
use super::metrics::Standing;
use crate::onus::{Onus, WeakOnus};

/// The wait after a page or a failure: whoever answers at once must not be asked without pause.
const PAUSE: Duration = Duration::from_millis(500);
const BACKOFF_MAX: Duration = Duration::from_secs(5);

pub(crate) struct Followed {
    pub(crate) staleness: Duration,
    pub(crate) kept: Option<PathBuf>,
}

/// Follows until the service's last handle is gone, or until it is told to end.
pub(crate) async fn run(
    onus: WeakOnus,
    client: Client,
    followed: Followed,
    standing: Arc<Standing>,
    mut ends: watch::Receiver<bool>,
) {
    tokio::select! {
        () = follow(onus, client, followed, standing) => {}
        Ok(_) = ends.wait_for(|&ends| ends) => {}
    }
}

async fn follow(weak: WeakOnus, client: Client, followed: Followed, standing: Arc<Standing>) {
    let Followed { staleness, kept } = followed;
    let mut state = State::new();
    let named = weak.upgrade().map(|onus| (onus.agent().service().clone(), onus.clock()));
    let Some((service, clock)) = named else { return };
    if let Some(path) = &kept
        && let Some((page, age)) = kept::read(path.clone(), staleness, clock.wall()).await
        && page.service == *service
        && let Some(onus) = weak.upgrade()
    {
        tracing::info!(age_seconds = age.as_secs(), "onus: classes of an earlier process are used");
        state.confirmed = Instant::now().checked_sub(age).unwrap_or(state.confirmed);
        state.take(&onus, page, age);
        standing.confirmed(age);
    }
    let mut etag = None;
    let mut pause = PAUSE;
    loop {
        let handed = state.end_while(&weak, client.classes(&service, etag.as_ref())).await;
        let Some(onus) = weak.upgrade() else { return };
        match handed {
            Handed::Page(page, tag) => {
                etag = tag;
                state.confirmed = Instant::now();
                if let Some(path) = &kept {
                    kept::write(path.clone(), &page, onus.clock().wall()).await;
                }
                state.take(&onus, *page, Duration::ZERO);
                standing.confirmed(Duration::ZERO);
                pause = PAUSE;
            }
            Handed::Unchanged => {
                state.confirmed = Instant::now();
                standing.confirmed(Duration::ZERO);
                pause = PAUSE;
            }
            Handed::Failed(why) => {
                if pause == PAUSE {
                    tracing::warn!(
                        why,
                        "onus: the analysis hands back no classes; the last ones are used"
                    );
                }
                if state.confirmed.elapsed() >= staleness && standing.is_stale_now() {
                    tracing::warn!("onus: the classes of the analysis are too old, and forgotten");
                    state.take(&onus, ClassPage::default(), Duration::ZERO);
                    etag = None;
                }
                pause = (pause * 2).min(BACKOFF_MAX);
            }
        }
        drop(onus);
        let pause = tokio::time::sleep(pause.mul_f64(0.5 + 0.5 * fastrand::f64()));
        state.end_while(&weak, pause).await;
    }
}

/// What holds.
struct State {
    page: ClassPage,
    /// When the page was as it says.
    at: Instant,
    ordered: SwitchOrder,
    confirmed: Instant,
}

impl State {
    fn new() -> Self {
        let now = Instant::now();
        let (page, ordered) = (ClassPage::default(), SwitchOrder::default());
        Self { page, at: now, ordered, confirmed: now }
    }

    /// Takes over a page that was said `age` ago.
    fn take(&mut self, onus: &Onus, page: ClassPage, age: Duration) {
        self.page = page;
        let now = self.page.at.saturating_add(millis(age));
        self.hold(onus, now);
    }

    /// Waits for something, and meanwhile ends what has an end, with the analysis or without it.
    async fn end_while<T>(&mut self, onus: &WeakOnus, waited: impl Future<Output = T>) -> T {
        let mut waited = pin!(waited);
        loop {
            let end = self.page.next_end();
            let left = end.map(|end| Duration::from_millis(end.saturating_sub(self.page.at)));
            let ends = async {
                match left.and_then(|left| self.at.checked_add(left)) {
                    Some(end) => tokio::time::sleep_until(end).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                done = &mut waited => return done,
                () = ends => {}
            }
            match (onus.upgrade(), end) {
                (Some(onus), Some(end)) => self.hold(&onus, end),
                (None, _) | (_, None) => return waited.await,
            }
        }
    }

    /// Lets the page hold as it is at this time by the clock of the analysis.
    fn hold(&mut self, onus: &Onus, now: u64) {
        self.page.end_by(now);
        self.at = Instant::now();
        let page = &self.page;
        let wall = onus.clock().wall();
        let classes = page.edges.iter().map(|entry| given(entry, wall));
        onus.agent().follow_analysis(classes, onus.clock().now());
        // A shield is said again with what is left of it; only what differs is news.
        let left = |order: &SwitchOrder| order.shield_left_seconds.is_some_and(|left| left > 0);
        let lasting =
            |order: &SwitchOrder| SwitchOrder { shield_left_seconds: None, ..order.clone() };
        let news = lasting(&self.ordered) != lasting(&page.switches)
            || self.ordered.shield_left_seconds.is_some()
                != page.switches.shield_left_seconds.is_some()
            || left(&self.ordered) != left(&page.switches)
            || left(&page.switches);
        if news {
            match switches(&page.switches) {
                Ok(switches) => onus.switch(Source::Analysis, &switches),
                Err(why) => tracing::warn!(why, "onus: an order of the analysis cannot be meant"),
            }
        }
        self.ordered = page.switches.clone();
    }
}

fn given(entry: &EdgeClassEntry, wall: SystemTime) -> (EdgeName, GivenClass) {
    let name = EdgeName {
        caller: entry.caller_procedure.clone(),
        callee: entry.callee.as_str().into(),
        procedure: entry.procedure.clone(),
    };
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(entry.since)).unwrap_or(wall);
    let class = GivenClass {
        class: entry.class.into(),
        by_operator: entry.by == Word::Operator,
        k: entry.evidence.k,
        n: entry.evidence.n,
        held: wall.duration_since(since).unwrap_or_default(),
    };
    (name, class)
}

/// The order as the agent takes it; its text is that of a switch file.
pub(crate) fn switches(order: &SwitchOrder) -> Result<Switches, String> {
    let mut switches = match &order.mode {
        Some(mode) if mode.contains(['\n', '\r', '#']) => return Err(format!("mode is {mode:?}")),
        Some(mode) => {
            Switches::parse(&format!("mode: {mode}")).map_err(|error| error.to_string())?
        }
        None => Switches::default(),
    };
    switches.shield = order.shield_left_seconds.map(Duration::from_secs);
    switches.shield = switches.shield.map(|left| left.min(SHIELD_MAX));
    switches.who.clone_from(&order.who);
    switches.why.clone_from(&order.why);
    Ok(switches)
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// The longest shield that anybody may put up.
const SHIELD_MAX: Duration = Duration::from_secs(24 * 3600);
