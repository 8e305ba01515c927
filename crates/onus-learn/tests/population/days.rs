//! Four days of one caller, minute by minute. Only requests in which something fails are looked at,
//! so that ten million that go well cost nothing.

use std::fmt;
use std::ops::AddAssign;

use fastrand::Rng;
use onus_core::Timestamp;
use onus_learn::{CleanCounts, EdgeCounts, Estimator, MeasuredClass, frozen};

use super::callers::{Callee, Caller, MINUTES, Outage};

/// What counts as a failure of an edge.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// A call that failed after all its attempts.
    FinalOutcomes,
    /// Any attempt that failed.
    Attempts,
}

/// Failed requests by whose fault they were, and who was held to be at fault.
#[derive(Clone, Copy, Default)]
pub(super) struct Quality {
    /// The caller's own errors.
    pub(super) own: u64,
    /// … that it did not claim.
    pub(super) unclaimed: u64,
    /// … that it would not have claimed if it knew no edge.
    pub(super) beside_failures: u64,
    /// Errors of a callee that took the caller down.
    pub(super) of_callees: u64,
    /// … that the caller claimed.
    pub(super) claimed: u64,
}

impl Quality {
    pub(super) fn falsely_unclaimed(&self) -> f64 {
        self.unclaimed as f64 / self.own as f64
    }

    pub(super) fn falsely_claimed(&self) -> f64 {
        self.claimed as f64 / self.of_callees as f64
    }
}

impl AddAssign for Quality {
    fn add_assign(&mut self, other: Self) {
        self.own += other.own;
        self.unclaimed += other.unclaimed;
        self.beside_failures += other.beside_failures;
        self.of_callees += other.of_callees;
        self.claimed += other.claimed;
    }
}

impl fmt::Display for Quality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(
            f,
            "falsely unclaimed {:.3} % of {} own errors ({:.3} % without knowledge), falsely claimed \
             {:.3} % of {} of callees",
            percent(self.falsely_unclaimed()),
            self.own,
            percent(self.beside_failures as f64 / self.own as f64),
            percent(self.falsely_claimed()),
            self.of_callees
        )
    }
}

/// Something that fails in a request: the callee of this number, or the caller for [`ITSELF`].
struct Event {
    request: u64,
    who: usize,
    /// Whether it fails for good.
    finally: bool,
}

const ITSELF: usize = usize::MAX;

/// The decisions of one caller.
pub(super) fn four_days(caller: &Caller, counting: Counting, seed: u64) -> Quality {
    let mut random = Rng::with_seed(seed);
    let mut quality = Quality::default();
    let mut estimators = vec![Estimator::new(Timestamp::ZERO); caller.callees.len()];
    let mut own = Failing::default();
    let mut failing: Vec<Failing> = caller.callees.iter().map(|_| Failing::default()).collect();
    let mut events = Vec::new();
    for minute in 0..MINUTES {
        let requests = (caller.rate + random.f64()) as u64;
        events.clear();
        let share = during(caller.own, &caller.own_outages, minute);
        own.within(requests, share, &mut random, |request, _| {
            events.push(Event { request, who: ITSELF, finally: true });
        });
        for (who, (callee, failing)) in caller.callees.iter().zip(&mut failing).enumerate() {
            let share = during(callee.fails, &callee.outages, minute);
            let share = during(share, &caller.common_outages, minute);
            failing.within(requests, share, &mut random, |request, random| {
                let finally = callee.attempts == 1 || random.f64() < share;
                events.push(Event { request, who, finally });
            });
        }
        if events.is_empty() {
            continue;
        }
        // The caller does its own work last.
        events.sort_by_key(|event| (event.request, event.who));

        let now = Timestamp::from_nanos((minute + 1) * 60_000_000_000);
        let classes: Vec<_> = estimators.iter().map(|it| it.measure(now).class).collect();
        let mut counts = vec![EdgeCounts::default(); estimators.len()];
        let mut clean = CleanCounts { clean: requests, clean_failed: 0 };
        for events in events.chunk_by(|one, other| one.request == other.request) {
            let request = Request::of(events, caller, minute, &mut random);
            request.judge(&classes, &mut quality);
            let failed = |event: &&&Event| event.finally || counting == Counting::Attempts;
            let failed: Vec<_> = request.calls.iter().filter(failed).map(|it| it.who).collect();
            let is_to_blame = |who: usize| classes[who] != MeasuredClass::FailOpen;
            if failed.iter().any(|&who| is_to_blame(who)) {
                clean.clean -= 1;
            } else {
                clean.clean_failed += u64::from(request.failed());
            }
            for &who in &failed {
                let another = failed.iter().any(|&other| other != who && is_to_blame(other));
                counts[who] += EdgeCounts::of_request(true, another, request.failed());
            }
        }
        for ((estimator, counts), class) in estimators.iter_mut().zip(counts).zip(classes) {
            let caller = clean.apart_from(&counts, class.edge_class());
            estimator.minute(counts, frozen(caller), now);
        }
    }
    quality
}

/// The share that fails in a minute.
fn during(share: f64, outages: &[Outage], minute: u64) -> f64 {
    let current = outages.iter().filter(|outage| outage.minutes.contains(&minute));
    current.map(|outage| outage.share).fold(share, f64::max)
}

/// A request in which something failed.
struct Request<'e> {
    /// The calls with a failed attempt that were made and not given up.
    calls: Vec<&'e Event>,
    /// Whether a callee took it down, and whether it failed by itself.
    taken_down: bool,
    by_itself: bool,
}

impl<'e> Request<'e> {
    fn of(events: &'e [Event], caller: &Caller, minute: u64, random: &mut Rng) -> Self {
        let mut request = Self { calls: Vec::new(), taken_down: false, by_itself: false };
        for event in events {
            if request.taken_down && !caller.goes_on {
                break;
            }
            if event.who == ITSELF {
                request.by_itself = !request.taken_down;
                continue;
            }
            request.calls.push(event);
            let takes_down = takes_down(&caller.callees[event.who], minute);
            request.taken_down |= event.finally && random.f64() < takes_down;
        }
        request
    }

    fn failed(&self) -> bool {
        self.taken_down || self.by_itself
    }

    /// Who would be held to be at fault: whoever failed on an edge that is not known to be survived.
    fn judge(&self, classes: &[MeasuredClass], quality: &mut Quality) {
        let failed = || self.calls.iter().filter(|event| event.finally);
        let blames = failed().any(|event| classes[event.who] != MeasuredClass::FailOpen);
        if self.taken_down {
            quality.of_callees += 1;
            quality.claimed += u64::from(!blames);
        } else if self.by_itself {
            quality.own += 1;
            quality.unclaimed += u64::from(blames);
            quality.beside_failures += u64::from(failed().next().is_some());
        }
    }
}

fn takes_down(callee: &Callee, minute: u64) -> f64 {
    let (from, later) = callee.later;
    if minute >= from { later } else { callee.takes_down }
}

/// A share of all requests that fails, drawn as the requests between one failure and the next.
#[derive(Default)]
struct Failing {
    share: f64,
    until_next: u64,
}

impl Failing {
    /// Calls `fail` with each of the next requests that fails.
    fn within(
        &mut self,
        requests: u64,
        share: f64,
        random: &mut Rng,
        mut fail: impl FnMut(u64, &mut Rng),
    ) {
        if share != self.share {
            self.share = share;
            self.until_next = gap(share, random);
        }
        while self.until_next < requests {
            fail(self.until_next, random);
            self.until_next = self.until_next.saturating_add(1 + gap(share, random));
        }
        self.until_next -= requests;
    }
}

/// How many requests go well before one fails.
fn gap(share: f64, random: &mut Rng) -> u64 {
    if share >= 1.0 {
        return 0;
    }
    ((1.0 - random.f64()).ln() / (1.0 - share).ln()) as u64
}
