//! [`criteria_met`] over every ending and every kind of attempt count.

use onus_core::{Ending, Stop, criteria_met};

/// Endings that meet the criteria without a retry, as the protocol lists them.
const MET_AT_ONCE: &str = "suppressed marked pushback budget-denied gated";

#[test]
fn every_ending_after_any_number_of_attempts() {
    // [criteria-1] [criteria-2] [criteria-3] [criteria-4]
    let endings = Stop::ALL.map(Ending::Stopped).into_iter().chain([Ending::InFlight]);
    for ending in endings {
        let name = ending.reason().as_str();
        for attempts in [0, 1, 2, 3, u32::MAX] {
            let retried = attempts > 1;
            let met = retried || MET_AT_ONCE.split(' ').any(|listed| listed == name);
            assert_eq!(criteria_met(attempts, ending), met, "{name} after {attempts}");
        }
    }
}
