//! What must hold of a load, whatever goes wrong below it.

use std::collections::BTreeMap;
use std::fmt;

use super::app::{Asked, Times};
use super::load::{Ended, Kind, Outcome};
use crate::sidecar::cast::Page;

/// What a load has come to.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) sent: u64,
    /// Requests that may be tried again, and failed all the same.
    pub(super) failed_reads: u64,
    pub(super) failed_writes: u64,
    /// Those of them that no instance has torn or ignored: somebody else has lost them.
    pub(super) lost_writes: u64,
    /// One of the failed reads.
    pub(super) failed: Option<(Ended, Times)>,
    /// Answers that are failures.
    pub(super) errors: u64,
    /// How often an instance answered what had been answered: too late, or to nobody.
    pub(super) again: u64,
    /// What was answered instead of what an instance would have.
    pub(super) statuses: BTreeMap<u16, u64>,
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sent, failed_reads, failed_writes, lost_writes, failed, .. } = self;
        write!(f, "{sent} requests, failed: {failed_reads} reads, {failed_writes} writes ")?;
        write!(f, "({lost_writes} of them at no instance) {:?}", self.statuses)?;
        failed.iter().try_for_each(|failed| write!(f, ", one of them {failed:?}"))
    }
}

/// Adds up; panics where an answer was lost, was given twice, or is none of the possible ones.
pub(super) fn sums(name: &str, all: &[Ended], asked: &Asked, is_owned: bool) -> Sums {
    let mut sums = Sums { sent: all.len() as u64, ..Sums::default() };
    for ended in all {
        let times = asked.of(ended.number);
        let Outcome::Status(status) = ended.outcome else {
            panic!("{name}: {ended:?} has no answer, read and answered {times:?}");
        };
        let answers = match ended.kind {
            Kind::Read | Kind::Write => 200,
            Kind::Closed => 503,
            Kind::Missing => 404,
        };
        assert!(status == answers || matches!(status, 502..=504), "{name}: {ended:?} {times:?}");
        sums.errors += u64::from(status >= 500);
        if status != answers {
            *sums.statuses.entry(status).or_default() += 1;
        }
        let mut again = times.answered.saturating_sub(1);
        match ended.kind {
            Kind::Read => {
                if status != answers {
                    sums.failed_reads += 1;
                    sums.failed = Some((*ended, times));
                }
            }
            // A failure that may have been a success is not tried again.
            Kind::Write => {
                assert!(times.read <= 1, "{name}: {ended:?} {times:?}");
                sums.failed_writes += u64::from(status != answers);
                let is_lost = status != answers && times.torn + times.ignored == 0;
                sums.lost_writes += u64::from(is_lost);
            }
            // Nobody but an owner knows that it has been retried.
            Kind::Closed if !is_owned => again = 0,
            Kind::Closed | Kind::Missing => {}
        }
        sums.again += u64::from(again);
        assert!(times.read <= ATTEMPTS, "{name}: {ended:?} {times:?}");
        assert!(status >= 500 || times.answered > 0, "{name}: {ended:?} {times:?}");
    }
    sums
}

/// What the sidecar that the load went through has counted of it, to the unit; the callees behind it
/// have counted so many requests.
pub(super) fn balance(name: &str, sums: &Sums, read_and_left: [u64; 2], page: &Page) {
    let calls = |outcome| page.sum("onus_calls_total", &[outcome]);
    assert_eq!(calls("outcome=\"abandoned\""), 0, "{name}");
    assert_eq!(calls("outcome=\"error\""), sums.errors, "{name}");
    assert_eq!(calls("outcome=\"ok\""), sums.sent - sums.errors, "{name}");
    let of_callees = |family, more: &[&str]| {
        let one = |callee| page.sum(family, &[&[callee], more].concat());
        one("callee=\"peer\"") + one("callee=\"ledger\"")
    };
    let retries = of_callees("onus_retries_total", &["verdict=\"made\""]);
    let attempts = Attempts {
        made: sums.sent + retries,
        unsent: of_callees("onus_proxy_unreachable_total", &[])
            + of_callees("onus_proxy_refused_total", &[]),
        broken: of_callees("onus_proxy_broken_total", &[])
            + of_callees("onus_proxy_given_up_total", &[]),
    };
    attempts.balance(name, read_and_left, sums.again);
    for gauge in ["onus_proxy_requests", "onus_proxy_replay_bytes", "onus_correlation_entries"] {
        assert_eq!(page.sum(gauge, &[]), 0, "{name}: {gauge}");
    }
}

/// The retries that a sidecar has made are those of the table: none of an error for which one was
/// made below, and of writes only where they have met nobody.
pub(super) fn table(name: &str, page: &Page) {
    let made =
        |labels: &[&str]| page.sum("onus_retries_total", &[&["verdict=\"made\""], labels].concat());
    assert_eq!(made(&["cause=\"unclaimed\""]), 0, "{name}");
    let writes = made(&["callee=\"ledger\""]);
    assert_eq!(made(&["callee_method=\"POST\""]), writes, "{name}");
    let met_nobody = page.sum("onus_proxy_unreachable_total", &["callee=\"ledger\""]);
    assert!(writes <= met_nobody, "{name}: {writes} retries, {met_nobody} met nobody");
}

/// What became of the attempts over an edge, as whoever makes them counts; one that was sent twice,
/// because the callee has provably not worked on it, is one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Attempts {
    pub(super) made: u64,
    /// For which there was no connection.
    pub(super) unsent: u64,
    /// Their connection broke, before the callee had read them or after that; or nobody waited for
    /// them any more.
    pub(super) broken: u64,
}

impl Attempts {
    /// Each of them was read by the callee, or is counted as one that was not. Those that the callee
    /// has left without an answer had been read; how far the others came that broke, nobody knows: not
    /// to the callee, or to an answer that comes again.
    pub(super) fn balance(self, name: &str, [read, left]: [u64; 2], again: u64) {
        let arrived = self.made - self.unsent;
        assert!(self.broken >= left, "{name}: {self:?}, {read} read, {left} left");
        let unknown = self.broken - left;
        let possible = arrived - unknown.min(arrived)..=arrived;
        assert!(possible.contains(&read), "{name}: {self:?}, {read} read, {left} left");
        assert!(again <= unknown, "{name}: {self:?}, {left} left, {again} answered again");
    }
}

/// As the sidecars of these tests are configured.
const ATTEMPTS: u32 = 3;
