//! The simulated counts against closed forms, which share no code with the simulator.

use onus_sim::simulate::{Changes, Estimate, Outcome, RunOptions, SHIPPED, Scenario, run};

use super::{NEVER, none};

/// Each cell of an outcome with its closed form: what it is, the mean, half of its interval, and
/// the formula.
fn cells(outcome: &Outcome) -> Vec<(String, f64, f64, f64, bool)> {
    let Some(exact) = &outcome.exact else { return Vec::new() };
    let loads = outcome.services.iter().zip(&exact.load).map(|(service, exact)| {
        let Estimate { mean, half_width, .. } = service.per_request;
        (format!("load of {}", service.name), mean, half_width, exact.value(), exact.is_whole())
    });
    let factor = outcome.load_factor.map(|load| {
        let exact = exact.load_factor;
        ("load factor".to_owned(), load.mean, load.half_width, exact.value(), exact.is_whole())
    });
    let ok = outcome.availability;
    let exact = exact.availability;
    let ok = ("ok".to_owned(), ok.mean, ok.half_width, exact.value(), exact.is_whole());
    loads.chain(factor).chain([ok]).collect()
}

#[test]
fn simulated_counts_are_those_of_the_closed_forms() {
    let mut compared = 0;
    for (name, text) in SHIPPED {
        // Those in which luck has a part; `mission.rs` and `why/` have the others.
        if !["availability", "flaky-leaf"].contains(name) {
            continue;
        }
        let changes = Changes { seeds: Some(3), sweep: None };
        let scenario = Scenario::load(name, text, &changes, &none).expect("a shipped scenario");
        let options = RunOptions { threads: 2, stop: &NEVER, progress: &|| () };
        for outcome in &run(&scenario, &options).outcomes {
            for (what, mean, half_width, exact, whole) in cells(outcome) {
                // Whole numbers leave nothing to luck. The others are of the long run: a finite
                // bucket is a little worse, by 0.15 points where errors just meet the budget.
                let tolerance = if whole { 1e-9 } else { 0.002 + 2.0 * half_width };
                let value = outcome.value;
                let policy = &outcome.policy;
                assert!(
                    (mean - exact).abs() <= tolerance,
                    "{name}, {policy} at {value:?}: {what} is {mean}, exactly {exact}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 60, "{compared} cells");
}
