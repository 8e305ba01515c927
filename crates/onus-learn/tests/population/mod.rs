//! How good decisions are over four days of a whole population of callers, with outages, changes of
//! class and chronic failures: how often the estimator makes a caller blame a callee for its own
//! error, or own its callee's.

use std::ops::RangeInclusive;

mod callers;
mod days;

use callers::{Chronic, callers};
use days::{Counting, Quality, four_days};

/// The decisions of the populations of these seeds, and the highest share of own errors that one of
/// them does not claim.
fn quality(chronic: Chronic, counting: Counting, seeds: RangeInclusive<u64>) -> (Quality, f64) {
    let (mut all, mut worst) = (Quality::default(), 0.0);
    for seed in seeds {
        let mut one = Quality::default();
        for (number, caller) in (0..).zip(callers(chronic, seed)) {
            one += four_days(&caller, counting, seed * 1_000 + number);
        }
        worst = f64::max(worst, one.falsely_unclaimed());
        all += one;
    }
    (all, worst)
}

// A bar for the mean needs many populations: one busy caller with an outage of its own while a
// callee fails whose class has just changed is a few tenths of a percent of all own errors of one.
const SEEDS: RangeInclusive<u64> = 1..=16;
const CEILING: f64 = 0.004;

#[test]
fn few_errors_are_put_at_the_wrong_door() {
    let (quality, worst) = quality(Chronic::None, Counting::FinalOutcomes, SEEDS);
    assert!(quality.own > 1_000_000 && quality.of_callees > 1_000_000, "{quality}");
    assert!(quality.falsely_unclaimed() <= 0.001, "{quality}");
    assert!(quality.falsely_claimed() <= 0.01, "{quality}");
    assert!(worst <= CEILING, "{worst}");
    // Whoever knows no edge blames whatever failed: it is knowledge that makes the difference.
    assert!(quality.unclaimed * 5 < quality.beside_failures, "{quality}");
}

#[test]
fn optional_callees_that_fail_often_change_little() {
    let (quality, worst) = quality(Chronic::Some, Counting::FinalOutcomes, SEEDS);
    assert!(quality.falsely_unclaimed() <= 0.001, "{quality}");
    assert!(quality.falsely_claimed() <= 0.024, "{quality}");
    assert!(worst <= CEILING, "{worst}");
    assert!(quality.unclaimed * 40 < quality.beside_failures, "{quality}");
}

#[test]
fn optional_callees_that_are_dead_hide_little() {
    // [class-1] If they hid other callees from each other, it would be twice as much.
    let (quality, _) = quality(Chronic::Dead, Counting::FinalOutcomes, 1..=1);
    assert!(quality.falsely_unclaimed() <= 0.03, "{quality}");
    assert!(quality.unclaimed * 15 < quality.beside_failures, "{quality}");
}

#[test]
fn counting_attempts_instead_of_final_outcomes_breaks_it() {
    // [class-1] A retry that went well makes a callee look optional that is not.
    let (quality, _) = quality(Chronic::None, Counting::Attempts, 1..=1);
    assert!(quality.falsely_claimed() > 0.05, "{quality}");
}
