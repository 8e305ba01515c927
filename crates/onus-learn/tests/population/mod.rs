//! How good decisions are over four days of a whole population of callers, with outages, changes of
//! class and chronic failures: how often the estimator makes a caller blame a callee for its own
//! error, or own its callee's.

mod callers;
mod days;

use callers::{Chronic, callers};
use days::{Counting, Quality, four_days};

fn quality(chronic: Chronic, counting: Counting) -> Quality {
    let mut all = Quality::default();
    for (seed, caller) in callers(chronic).iter().enumerate() {
        all += four_days(caller, counting, seed as u64);
    }
    all
}

// Another population may come out worse: one busy caller with an outage of its own while a callee
// fails whose class has just changed is a few tenths of a percent of all own errors.

#[test]
fn few_errors_are_put_at_the_wrong_door() {
    let quality = quality(Chronic::None, Counting::FinalOutcomes);
    assert!(quality.own > 100_000 && quality.of_callees > 100_000, "{quality}");
    assert!(quality.falsely_unclaimed() <= 0.001, "{quality}");
    assert!(quality.falsely_claimed() <= 0.01, "{quality}");
    // Whoever knows no edge blames whatever failed: it is knowledge that makes the difference.
    assert!(quality.unclaimed * 5 < quality.beside_failures, "{quality}");
}

#[test]
fn optional_callees_that_fail_all_the_time_change_little() {
    let quality = quality(Chronic::Some, Counting::FinalOutcomes);
    assert!(quality.falsely_unclaimed() <= 0.001, "{quality}");
    assert!(quality.falsely_claimed() <= 0.024, "{quality}");
    assert!(quality.unclaimed * 50 < quality.beside_failures, "{quality}");
}

#[test]
fn counting_attempts_instead_of_final_outcomes_breaks_it() {
    // [class-1] A retry that went well makes a callee look optional that is not.
    let quality = quality(Chronic::None, Counting::Attempts);
    assert!(quality.falsely_claimed() > 0.05, "{quality}");
}
