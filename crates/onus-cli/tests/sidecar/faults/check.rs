//! What must hold of a load, whatever goes wrong below it.

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
    /// One of the failed reads.
    pub(super) failed: Option<(Ended, Times)>,
    /// Answers that are failures.
    pub(super) errors: u64,
}

/// Adds up; panics where an answer was lost, was given twice, or is none of the possible ones.
pub(super) fn sums(name: &str, all: &[Ended], asked: &Asked, is_owned: bool) -> Sums {
    let mut sums = Sums { sent: all.len() as u64, ..Sums::default() };
    for ended in all {
        let times = asked.of(ended.number);
        let Outcome::Status(status) = ended.outcome else {
            panic!("{name}: {ended:?} has no answer, read and answered {times:?}");
        };
        sums.errors += u64::from(status >= 500);
        match ended.kind {
            Kind::Read => {
                assert!(matches!(status, 200 | 502..=504), "{name}: {ended:?}");
                if status != 200 {
                    sums.failed_reads += 1;
                    sums.failed = Some((*ended, times));
                }
                assert!(times.read <= ATTEMPTS, "{name}: {ended:?} {times:?}");
                assert!(status != 200 || times.answered > 0, "{name}: {ended:?} {times:?}");
            }
            // A failure that may have been a success is not tried again.
            Kind::Write => {
                assert!(matches!(status, 200 | 502..=504), "{name}: {ended:?}");
                sums.failed_writes += u64::from(status != 200);
                assert!(times.read <= 1, "{name}: {ended:?} {times:?}");
                assert_eq!(
                    status == 200,
                    status == 200 && times.answered == 1,
                    "{name}: {ended:?}"
                );
            }
            Kind::Closed => {
                assert!((502..=504).contains(&status), "{name}: {ended:?}");
                assert!(times.answered <= if is_owned { 1 } else { ATTEMPTS }, "{name}: {ended:?}");
            }
            Kind::Missing => {
                assert!(matches!(status, 404 | 502..=504), "{name}: {ended:?}");
                assert!(status != 404 || times.answered <= ATTEMPTS, "{name}: {ended:?}");
            }
        }
    }
    sums
}

/// What the sidecar that the load went through has counted of it, to the unit.
pub(super) fn balance(name: &str, sums: &Sums, asked: &Asked, page: &Page) {
    let calls = |outcome| page.sum("onus_calls_total", &[outcome]);
    assert_eq!(calls("outcome=\"abandoned\""), 0, "{name}");
    assert_eq!(calls("outcome=\"error\""), sums.errors, "{name}");
    assert_eq!(calls("outcome=\"ok\""), sums.sent - sums.errors, "{name}");
    let peer = ["callee=\"peer\""];
    let retries = page.sum("onus_retries_total", &["callee=\"peer\"", "verdict=\"made\""]);
    let attempts = sums.sent + retries + page.sum("onus_proxy_resends_total", &peer);
    let lost = page.sum("onus_proxy_unreachable_total", &peer)
        + page.sum("onus_proxy_refused_total", &peer)
        + page.sum("onus_proxy_resends_total", &peer);
    let broken = page.sum("onus_proxy_broken_total", &peer);
    let read = asked.read();
    assert!(read + lost <= attempts, "{name}: {read} read, {lost} lost of {attempts} attempts");
    assert!(read + lost + broken >= attempts, "{name}: {read}, {lost}, {broken} of {attempts}");
    for gauge in ["onus_proxy_requests", "onus_proxy_replay_bytes", "onus_correlation_entries"] {
        assert_eq!(page.sum(gauge, &[]), 0, "{name}: {gauge}");
    }
}

/// As the sidecars of these tests are configured.
const ATTEMPTS: u32 = 3;
