//! What the estimator is for, told as the lives of edges: outages, flips, quiet weeks.

use std::time::Duration;

use onus_core::{EdgeClass, Timestamp};
use onus_learn::{CleanCounts, Declared, EdgeCounts, Estimator, MeasuredClass, frozen, raw_class};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// One edge and its caller, fed request by request.
struct Edge {
    estimator: Estimator,
    now: Timestamp,
}

impl Edge {
    fn new() -> Self {
        Self { estimator: Estimator::new(Timestamp::ZERO), now: Timestamp::ZERO }
    }

    /// `failures` isolated failures in one minute, `both` of them shared by the caller.
    fn minute(&mut self, failures: u64, both: u64, caller: CleanCounts) {
        let mut counts = EdgeCounts::default();
        for i in 0..failures {
            counts += EdgeCounts::of_request(true, false, i < both);
        }
        self.now = self.now.saturating_add(MINUTE);
        self.estimator.minute(counts, frozen(caller), self.now);
    }

    /// As [`Edge::minute`], with a caller that is well.
    fn healthy_minute(&mut self, failures: u64, both: u64) {
        self.minute(failures, both, HEALTHY);
    }

    fn wait(&mut self, time: Duration) {
        self.now = self.now.saturating_add(time);
    }

    fn class(&self) -> MeasuredClass {
        self.estimator.measure(self.now).class
    }

    /// An edge that has long been of `class`.
    fn settled(class: MeasuredClass) -> Self {
        let mut edge = Self::new();
        for _ in 0..10 {
            edge.healthy_minute(25, if class == MeasuredClass::FailClose { 25 } else { 0 });
        }
        assert_eq!(edge.class(), class);
        edge
    }
}

const HEALTHY: CleanCounts = CleanCounts { clean: 1_000, clean_failed: 1 };

#[test]
fn nine_failures_prove_nothing() {
    // [class-3] [class-4] [class-5]
    for (both_per_failure, class) in [(0, MeasuredClass::FailOpen), (1, MeasuredClass::FailClose)] {
        let mut edge = Edge::new();
        assert_eq!(edge.class(), MeasuredClass::NoData);
        for _ in 0..9 {
            edge.healthy_minute(1, both_per_failure);
            assert_eq!(edge.class(), MeasuredClass::Unknown);
        }
        edge.healthy_minute(1, both_per_failure);
        assert_eq!(edge.class(), class);
    }
}

#[test]
fn an_edge_without_failures_is_blamed() {
    let mut edge = Edge::new();
    for _ in 0..100 {
        let calls = EdgeCounts { calls: 1_000_000, ..EdgeCounts::default() };
        edge.now = edge.now.saturating_add(MINUTE);
        edge.estimator.minute(calls, false, edge.now);
    }
    assert_eq!(edge.class(), MeasuredClass::NoData);
    let finding = Declared::default().resolve(edge.estimator.measure(edge.now));
    assert!(finding.class.is_blamed());
}

/// An hour in which the caller fails whatever its callees do, and one callee in five requests fails.
fn caller_outage(edge: &mut Edge, clean: u64) {
    for _ in 0..60 {
        edge.minute(clean / 4, clean / 4, CleanCounts { clean, clean_failed: clean });
    }
}

#[test]
fn an_outage_of_the_caller_changes_no_class() {
    // [class-8]
    for class in [MeasuredClass::FailOpen, MeasuredClass::FailClose] {
        let mut edge = Edge::settled(class);
        let before = edge.estimator.measure(edge.now);
        caller_outage(&mut edge, 100);
        let after = edge.estimator.measure(edge.now);
        assert_eq!((after.class, after.k, after.n), (class, before.k, before.n));
    }
    // An outage that begins before anything was learnt makes no edge fail-close either.
    let mut edge = Edge::new();
    caller_outage(&mut edge, 100);
    assert_eq!(edge.class(), MeasuredClass::Unknown);
}

#[test]
fn without_the_freeze_the_same_outage_would_turn_the_edge() {
    // Nine clean requests a minute are too few to see the outage.
    let mut edge = Edge::settled(MeasuredClass::FailOpen);
    caller_outage(&mut edge, 9);
    assert_ne!(edge.class(), MeasuredClass::FailOpen);
}

#[test]
fn adapts_within_tens_of_failures_after_a_flip() {
    use MeasuredClass::{FailClose, FailOpen};
    // (from, to, failures a minute, most failures until left, most failures until turned)
    for (from, to, rate, left, turned) in [
        (FailOpen, FailClose, 1, 50, 170),
        (FailOpen, FailClose, 25, 50, 150),
        (FailClose, FailOpen, 1, 50, 170),
        (FailClose, FailOpen, 25, 50, 150),
    ] {
        let mut edge = Edge::settled(from);
        let mut failures = 0;
        let mut left_after = None;
        while edge.class() != to {
            edge.healthy_minute(rate, if to == FailClose { rate } else { 0 });
            failures += rate;
            assert!(failures <= turned, "{from} still after {failures} failures");
            if edge.class() != from {
                left_after.get_or_insert(failures);
            }
        }
        let left_after = left_after.expect("left before turned");
        assert!(left_after <= left, "{from} left after {left_after} failures");
        // One burst alone turns nothing: its failures have one cause.
        assert!(rate == 1 || left_after > rate);
    }
}

#[test]
fn a_quiet_edge_keeps_its_class_for_weeks() {
    // [class-7]
    let mut edge = Edge::settled(MeasuredClass::FailOpen);
    edge.wait(29 * DAY);
    assert_eq!(edge.class(), MeasuredClass::FailOpen);
    // One failure a fortnight is enough to go on for a year …
    for _ in 0..26 {
        edge.healthy_minute(1, 0);
        edge.wait(14 * DAY);
    }
    assert_eq!(edge.class(), MeasuredClass::FailOpen);
    // … and a month of silence ends it.
    edge.wait(17 * DAY);
    assert_eq!(edge.class(), MeasuredClass::NoData);
}

#[test]
fn a_ratio_on_the_border_does_not_flap() {
    // [class-3]
    // Between 10 % and 30 % by turns: around the threshold of 20 %.
    let mut edge = Edge::settled(MeasuredClass::FailOpen);
    for minute in 0..200 {
        edge.healthy_minute(20, if minute % 20 < 10 { 2 } else { 6 });
        assert_eq!(edge.class(), MeasuredClass::FailOpen, "minute {minute}");
    }
    // An edge that was never proven stays unproven at the ratio that the other one is held at.
    let mut edge = Edge::new();
    for minute in 0..50 {
        edge.healthy_minute(20, 6);
        assert_eq!(edge.class(), MeasuredClass::Unknown, "minute {minute}");
    }
}

#[test]
fn a_mixed_edge_stays_unknown() {
    let mut edge = Edge::new();
    for minute in 0..200 {
        edge.healthy_minute(10, 4 + minute % 3);
        assert_eq!(edge.class(), MeasuredClass::Unknown, "minute {minute}");
    }
}

#[test]
fn coincidences_are_blamed_only_until_the_edge_is_learnt() {
    // The articles' example: A fails by itself in 10 % of its requests, its fail-open callees B and
    // C in 10 % each, all independent. All 1,000 combinations, once each.
    let (mut b, mut c) = (EdgeCounts::default(), EdgeCounts::default());
    let mut clean = CleanCounts::default();
    let (mut own_errors, mut wrongly_blamed) = (0, 0);
    for i in 0..1_000 {
        let [a_fails, b_fails, c_fails] = [i % 10 == 0, i / 10 % 10 == 0, i / 100 == 0];
        b += EdgeCounts::of_request(b_fails, c_fails, a_fails);
        c += EdgeCounts::of_request(c_fails, b_fails, a_fails);
        if !b_fails && !c_fails {
            clean += CleanCounts::of_request(a_fails);
        }
        own_errors += u32::from(a_fails);
        wrongly_blamed += u32::from(a_fails && (b_fails || c_fails));
    }
    assert_eq!((wrongly_blamed, own_errors), (19, 100), "1.9 of 10");

    assert_eq!(raw_class(b.isolated_both, b.isolated), MeasuredClass::FailOpen);
    for counts in [b, c] {
        assert_eq!((counts.failures, counts.isolated, counts.joint), (100, 90, 10));
        let now = Timestamp::ZERO.saturating_add(MINUTE);
        let mut estimator = Estimator::new(Timestamp::ZERO);
        estimator.minute(counts, frozen(clean), now);
        let finding = Declared::default().resolve(estimator.measure(now));
        assert_eq!(finding.class, EdgeClass::FailOpen, "{finding}");
        assert!(!finding.class.is_blamed(), "0 of 10 from the next minute on");
    }
}

#[test]
fn one_failure_common_to_two_callees_teaches_nothing() {
    // Both callees share a database; the caller needs only the first.
    let mut estimator = Estimator::new(Timestamp::ZERO);
    let mut counts = EdgeCounts::default();
    for _ in 0..500 {
        counts += EdgeCounts::of_request(true, true, true);
    }
    estimator.minute(counts, false, Timestamp::ZERO);
    let found = estimator.measure(Timestamp::ZERO);
    assert_eq!((found.class, found.n), (MeasuredClass::Unknown, 0.0));
}
