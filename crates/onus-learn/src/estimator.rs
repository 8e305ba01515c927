//! The memory of one edge: how evidence comes in, is outweighed and expires.
//!
//! Evidence is `n` isolated failures, `k` of which the caller shared. It is remembered by count and
//! not by time, so that an edge in an incident is judged anew within tens of failures while a
//! quiet edge keeps its class for weeks:
//!
//! 1. A minute with x isolated failures, y of them shared, weighs w = min(x, [`MINUTE_WEIGHT`]); it
//!    adds w to `n` and w·y/x to `k`.
//! 2. If `n` + w would exceed [`MEMORY`], the old evidence is scaled by ([`MEMORY`] − w) / `n`
//!    first, ratio unchanged, so that `n` becomes exactly [`MEMORY`]. The newest minute is then at
//!    most a quarter of all evidence. `n` is always a whole number.
//! 3. A minute in which learning is frozen adds nothing.
//! 4. [`EXPIRY`] after the last isolated failure that was learnt from, all evidence is forgotten.

use std::time::Duration;

use onus_core::Timestamp;

use crate::class::MeasuredClass;
use crate::counts::EdgeCounts;
use crate::measurement::Measurement;

/// What one edge has taught so far.
///
/// It holds ages and not points in time, so that it survives a change of the host's clock: it can
/// be written to disk and read back by a process whose clock starts anew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimator {
    pub(crate) class: MeasuredClass,
    /// Isolated failures remembered, a whole number from 0 to [`MEMORY`].
    pub(crate) n: f64,
    /// The weight among them of those that the caller shared.
    pub(crate) k: f64,
    /// Since the last isolated failure learnt from; zero while `n` is zero.
    pub(crate) evidence_age: Duration,
    /// Since the last failure of any kind; zero while there is no data.
    pub(crate) failure_age: Duration,
    /// Since the class became what it is.
    pub(crate) class_age: Duration,
    /// The moment that the ages are true for.
    pub(crate) as_of: Timestamp,
}

impl Estimator {
    /// An edge about which nothing is known.
    #[must_use]
    pub const fn new(now: Timestamp) -> Self {
        Self {
            class: MeasuredClass::NoData,
            n: 0.0,
            k: 0.0,
            evidence_age: Duration::ZERO,
            failure_age: Duration::ZERO,
            class_age: Duration::ZERO,
            as_of: now,
        }
    }

    /// Learns from one minute of the edge, unless its caller is [`frozen`](crate::frozen).
    ///
    /// To be called once per minute; a minute without a failure may be left out.
    pub fn minute(&mut self, counts: EdgeCounts, frozen: bool, now: Timestamp) {
        *self = self.at(now);
        if counts.failures == 0 && counts.isolated == 0 {
            return;
        }
        self.failure_age = Duration::ZERO;
        if self.class == MeasuredClass::NoData {
            self.become_class(MeasuredClass::Unknown, Duration::ZERO);
        }
        if frozen || counts.isolated == 0 {
            return;
        }
        self.absorb(counts);
        self.evidence_age = Duration::ZERO;
        self.become_class(self.class.next(self.k, self.n), Duration::ZERO);
    }

    /// The class and its evidence at `now`.
    #[must_use]
    pub fn measure(&self, now: Timestamp) -> Measurement {
        let Self { class, n, k, class_age, .. } = self.at(now);
        Measurement { class, k, n, held: class_age }
    }

    fn absorb(&mut self, counts: EdgeCounts) {
        let isolated = counts.isolated as f64;
        // Counters read while a request is being booked may be one apart.
        let shared = counts.isolated_both.min(counts.isolated) as f64 / isolated;
        let weight = isolated.min(MINUTE_WEIGHT);
        if self.n + weight > MEMORY {
            self.k *= (MEMORY - weight) / self.n;
            self.n = MEMORY - weight;
        }
        self.n += weight;
        // Rounding must not carry the ratio past one.
        self.k = (self.k + weight * shared).min(self.n);
    }

    /// This edge as it is at `now` if nothing was learnt since: older, and perhaps expired.
    pub(crate) fn at(&self, now: Timestamp) -> Self {
        // A clock that steps back adds no age, and the ages go on from there.
        self.aged(now.saturating_since(self.as_of), now)
    }

    pub(crate) fn aged(&self, by: Duration, now: Timestamp) -> Self {
        let mut edge = *self;
        edge.as_of = now;
        edge.class_age = edge.class_age.saturating_add(by).min(AGE_MAX);
        if edge.class == MeasuredClass::NoData {
            return edge;
        }
        edge.failure_age = edge.failure_age.saturating_add(by);
        if edge.n > 0.0 {
            edge.evidence_age = edge.evidence_age.saturating_add(by);
            edge.forget_expired_evidence();
        }
        if let Some(over) = edge.failure_age.checked_sub(EXPIRY) {
            edge.failure_age = Duration::ZERO;
            edge.become_class(MeasuredClass::NoData, over);
        }
        edge
    }

    fn forget_expired_evidence(&mut self) {
        let Some(over) = self.evidence_age.checked_sub(EXPIRY) else { return };
        self.n = 0.0;
        self.k = 0.0;
        self.evidence_age = Duration::ZERO;
        self.become_class(MeasuredClass::Unknown, over);
    }

    fn become_class(&mut self, class: MeasuredClass, age: Duration) {
        if self.class != class {
            self.class = class;
            self.class_age = age;
        }
    }
}

/// The most isolated failures that are remembered.
///
/// With 100 a class is left some 40 failures after the callee's role has changed, and the interval
/// around the remembered ratio is at most 8 points to either side.
pub const MEMORY: f64 = 100.0;

/// The most that one minute weighs, in isolated failures: a quarter of [`MEMORY`].
///
/// The failures of one burst have one cause; a thousand of them are not a thousand samples.
pub const MINUTE_WEIGHT: f64 = MEMORY / 4.0;

/// How long evidence outlives the last failure it came from: 30 days.
///
/// A month holds a release cycle of most services; older failures are those of other code.
pub const EXPIRY: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The oldest age that has room on disk, 584 years: an edge reads back as it was written.
const AGE_MAX: Duration = Duration::from_nanos(u64::MAX);

#[cfg(test)]
mod tests {
    use MeasuredClass::{FailClose, FailOpen, NoData, Unknown};
    use proptest::prelude::*;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn isolated(isolated: u64, isolated_both: u64) -> EdgeCounts {
        EdgeCounts {
            calls: isolated,
            failures: isolated,
            isolated,
            isolated_both,
            ..EdgeCounts::default()
        }
    }

    fn joint(joint: u64) -> EdgeCounts {
        EdgeCounts {
            calls: joint,
            failures: joint,
            joint,
            joint_both: joint,
            ..EdgeCounts::default()
        }
    }

    /// An estimator after `minutes`, of which the first is at minute 1.
    fn after(minutes: &[EdgeCounts]) -> (Estimator, Timestamp) {
        let mut now = Timestamp::ZERO;
        let mut edge = Estimator::new(now);
        for &counts in minutes {
            now = now.saturating_add(MINUTE);
            edge.minute(counts, false, now);
        }
        (edge, now)
    }

    #[test]
    fn remembers_by_count() {
        // [class-5] [class-6]
        for (minutes, k, n, class) in [
            (&[][..], 0.0, 0.0, NoData),
            (&[isolated(9, 0)], 0.0, 9.0, Unknown),
            (&[isolated(9, 0), isolated(1, 0)], 0.0, 10.0, FailOpen),
            (&[isolated(9, 9), isolated(1, 1)], 10.0, 10.0, FailClose),
            (&[isolated(25, 20)], 20.0, 25.0, Unknown),
            // A burst weighs 25, its ratio unchanged.
            (&[isolated(1_000, 900)], 22.5, 25.0, FailClose),
            (&[isolated(u64::MAX, 0)], 0.0, 25.0, FailOpen),
            // Torn counters: shared by more than there were.
            (&[isolated(10, 11)], 10.0, 10.0, FailClose),
            (&[isolated(10, 0), isolated(10, 20)], 10.0, 20.0, Unknown),
            (&[isolated(25, 25); 4], 100.0, 100.0, FailClose),
            // The fifth minute scales four quarters to three.
            (
                &[
                    isolated(25, 25),
                    isolated(25, 25),
                    isolated(25, 25),
                    isolated(25, 25),
                    isolated(50, 0),
                ],
                75.0,
                100.0,
                FailClose,
            ),
            // Only what does not fit is outweighed: 80 become 75.
            (
                &[
                    isolated(20, 20),
                    isolated(20, 20),
                    isolated(20, 20),
                    isolated(20, 20),
                    isolated(25, 0),
                ],
                75.0,
                100.0,
                FailClose,
            ),
            // Joint failures say that there is data, and nothing else.
            (&[joint(50)], 0.0, 0.0, Unknown),
            (&[isolated(10, 0), joint(50)], 0.0, 10.0, FailOpen),
        ] {
            let (edge, now) = after(minutes);
            let found = edge.measure(now);
            assert_eq!((found.k, found.n, found.class), (k, n, class), "{minutes:?}");
        }
    }

    #[test]
    fn a_frozen_minute_teaches_nothing_and_keeps_nothing_alive() {
        // [class-8]
        let (mut edge, now) = after(&[isolated(20, 0)]);
        let before = edge.measure(now);
        edge.minute(isolated(25, 25), true, now);
        assert_eq!(edge.measure(now), before);

        let later = now.saturating_add(EXPIRY - MINUTE);
        edge.minute(isolated(25, 25), true, later);
        assert_eq!(edge.measure(later).class, FailOpen);
        let expired = edge.measure(later.saturating_add(2 * MINUTE));
        assert_eq!((expired.class, expired.n), (Unknown, 0.0), "failures were seen, none usable");
        assert_eq!(expired.held, MINUTE, "since the evidence expired");

        let mut edge = Estimator::new(now);
        edge.minute(isolated(25, 25), true, now);
        assert_eq!(edge.measure(now).class, Unknown, "a failure was seen");
    }

    #[test]
    fn forgets_a_month_after_the_last_evidence() {
        // [class-7]
        let (edge, last) = after(&[isolated(20, 0)]);
        for (age, class, n, held) in [
            (Duration::ZERO, FailOpen, 20.0, Duration::ZERO),
            (EXPIRY - Duration::from_nanos(1), FailOpen, 20.0, EXPIRY - Duration::from_nanos(1)),
            (EXPIRY, NoData, 0.0, Duration::ZERO),
            (EXPIRY + MINUTE, NoData, 0.0, MINUTE),
        ] {
            let found = edge.measure(last.saturating_add(age));
            assert_eq!((found.class, found.n, found.held), (class, n, held), "after {age:?}");
        }
        // One usable failure keeps all of it.
        let (mut edge, last) = (edge, last.saturating_add(EXPIRY - MINUTE));
        edge.minute(isolated(1, 0), false, last);
        let found = edge.measure(last.saturating_add(EXPIRY - MINUTE));
        assert_eq!((found.class, found.n), (FailOpen, 21.0));
    }

    #[test]
    fn tells_since_when_a_class_is_held() {
        let (mut edge, start) = after(&[isolated(20, 0)]);
        let mut now = start;
        for _ in 0..3 {
            now = now.saturating_add(MINUTE);
            edge.minute(isolated(5, 0), false, now);
        }
        assert_eq!(edge.measure(now).held, 3 * MINUTE, "evidence for it does not renew a class");
        now = now.saturating_add(MINUTE);
        edge.minute(isolated(25, 25), false, now);
        assert_eq!((edge.measure(now).class, edge.measure(now).held), (Unknown, Duration::ZERO));
    }

    #[test]
    fn a_clock_that_steps_back_adds_no_age() {
        let hour = Timestamp::from_nanos(3_600_000_000_000);
        let mut edge = Estimator::new(hour);
        edge.minute(isolated(20, 0), false, hour);
        assert_eq!(edge.measure(Timestamp::ZERO).held, Duration::ZERO);
        // Ages go on from the stepped-back clock.
        edge.minute(EdgeCounts::default(), false, Timestamp::ZERO);
        let minute = Timestamp::ZERO.saturating_add(MINUTE);
        assert_eq!(edge.measure(minute).held, MINUTE);
        assert_eq!(edge.measure(minute).class, FailOpen);
    }

    /// Evidence minute by minute, each with its own weight: what the two sums stand for.
    #[derive(Default)]
    struct Ledger(Vec<(f64, f64)>);

    impl Ledger {
        fn add(&mut self, isolated: u64, both: u64) {
            let weight = isolated.min(25) as f64;
            let old: f64 = self.0.iter().map(|(weight, _)| weight).sum();
            if old + weight > 100.0 {
                self.0.iter_mut().for_each(|entry| entry.0 *= (100.0 - weight) / old);
            }
            self.0.push((weight, both as f64 / isolated as f64));
        }

        fn sums(&self) -> (f64, f64) {
            let k = self.0.iter().map(|(weight, ratio)| weight * ratio).sum();
            (k, self.0.iter().map(|(weight, _)| weight).sum())
        }
    }

    #[derive(Clone, Copy, Debug)]
    struct Step {
        wait: Duration,
        counts: EdgeCounts,
        frozen: bool,
    }

    fn step() -> impl Strategy<Value = Step> {
        let counts = prop_oneof![
            2 => Just(EdgeCounts::default()),
            1 => (1..200_u64).prop_map(joint),
            // Mostly clear-cut, so that classes are reached and left.
            3 => (1..60_u64).prop_map(|n| isolated(n, 0)),
            3 => (1..60_u64).prop_map(|n| isolated(n, n)),
            3 => (1..60_u64, 0.0..=1.0_f64).prop_map(|(n, share)| isolated(n, (n as f64 * share) as u64)),
        ];
        let wait = prop_oneof![
            20 => Just(MINUTE),
            3 => (0..40 * 86_400_u64).prop_map(Duration::from_secs),
        ];
        (wait, counts, prop::bool::weighted(0.1)).prop_map(|(wait, counts, frozen)| Step {
            wait,
            counts,
            frozen,
        })
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        prop::collection::vec(step(), 0..60)
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_ledger(steps in steps()) {
            let mut ledger = Ledger::default();
            let mut now = Timestamp::ZERO;
            let mut last = Timestamp::ZERO;
            let mut edge = Estimator::new(now);
            for Step { wait, counts, frozen } in steps {
                now = now.saturating_add(wait);
                if now.saturating_since(last) >= Duration::from_secs(30 * 86_400) {
                    ledger = Ledger::default();
                }
                edge.minute(counts, frozen, now);
                if counts.isolated > 0 && !frozen {
                    ledger.add(counts.isolated, counts.isolated_both);
                    last = now;
                }
                let (k, n) = ledger.sums();
                let found = edge.measure(now);
                prop_assert!((found.k - k).abs() < 1e-9, "k {} and {k}", found.k);
                prop_assert!((found.n - n).abs() < 1e-9, "n {} and {n}", found.n);
                prop_assert!(found.n.fract() == 0.0 && found.n <= 100.0);
                prop_assert!((0.0..=found.n).contains(&found.k));
            }
        }

        #[test]
        fn a_class_is_entered_by_proof_and_left_by_ratio(steps in steps()) {
            let mut now = Timestamp::ZERO;
            let mut edge = Estimator::new(now);
            let mut before = edge.measure(now).class;
            for Step { wait, counts, frozen } in steps {
                now = now.saturating_add(wait);
                edge.minute(counts, frozen, now);
                let found = edge.measure(now);
                let ratio = found.ratio().unwrap_or(0.5);
                let (low, high) = found.interval();
                // Expiry may have come first; then the class was entered anew.
                let open = found.n >= 10.0 && ratio <= 0.2 && high < 0.3;
                let close = found.n >= 10.0 && ratio >= 0.8 && low > 0.7;
                match found.class {
                    FailOpen => prop_assert!(open || (before == FailOpen && ratio <= 0.35)),
                    FailClose => prop_assert!(close || (before == FailClose && ratio >= 0.65)),
                    Unknown => prop_assert!(!open && !close),
                    NoData => prop_assert!(found.n == 0.0),
                }
                before = found.class;
            }
        }

        #[test]
        fn quiet_minutes_may_be_left_out(steps in steps()) {
            let mut now = Timestamp::ZERO;
            let mut fed = Estimator::new(now);
            let mut skipping = fed;
            for Step { wait, counts, frozen } in steps {
                // Halfway, one of the two hears that nothing happened.
                fed.minute(EdgeCounts::default(), frozen, now.saturating_add(wait / 2));
                now = now.saturating_add(wait);
                fed.minute(counts, frozen, now);
                if counts != EdgeCounts::default() {
                    skipping.minute(counts, frozen, now);
                }
                prop_assert_eq!(fed.measure(now), skipping.measure(now));
            }
        }

        #[test]
        fn one_minute_moves_a_full_memory_by_a_quarter(share in 0.0..=1.0_f64, n in 1..u64::MAX, all in any::<bool>()) {
            let both = (25.0 * share) as u64;
            let (mut edge, now) = after(&[isolated(25, both); 4]);
            let before = edge.measure(now).ratio().expect("evidence");
            edge.minute(isolated(n, if all { n } else { 0 }), false, now);
            let after = edge.measure(now).ratio().expect("evidence");
            prop_assert!((after - before).abs() <= 0.25 + 1e-12);
        }
    }
}
