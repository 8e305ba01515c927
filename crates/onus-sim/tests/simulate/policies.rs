//! What policies come to, one against another: orderings and ratios that must not change.

use onus_sim::simulate::{Changes, Experiment, RunOptions, Scenario, run, shipped};

use super::{NEVER, none, outcome};

#[track_caller]
pub(super) fn play_shipped(name: &str, seeds: u32) -> Experiment {
    let changes = Changes { seeds: Some(seeds), sweep: None };
    let text = shipped(name).expect("a shipped scenario");
    let scenario = Scenario::load(name, text, &changes, &none).expect("a scenario");
    run(&scenario, &RunOptions { threads: 2, stop: &NEVER, progress: &|| () })
}

/// That a figure of each policy lies in its range.
#[track_caller]
fn check(
    experiment: &Experiment,
    what: fn(&onus_sim::simulate::Outcome) -> Option<f64>,
    rows: &[(&str, f64, f64)],
) {
    for (policy, least, most) in rows {
        let found = what(outcome(experiment, policy));
        let found = found.unwrap_or_else(|| panic!("{}, {policy}: nothing", experiment.scenario));
        let scenario = &experiment.scenario;
        assert!((*least..=*most).contains(&found), "{scenario}, {policy}: {found}");
    }
}

fn load(outcome: &onus_sim::simulate::Outcome) -> Option<f64> {
    outcome.load_factor.map(|load| load.mean)
}

fn bad_load(outcome: &onus_sim::simulate::Outcome) -> Option<f64> {
    outcome.bad_keys?.load_factor.map(|load| load.mean)
}

fn ok_percent(outcome: &onus_sim::simulate::Outcome) -> Option<f64> {
    Some(outcome.availability.mean * 100.0)
}

/// Seconds; a thousand for never.
fn recovery(outcome: &onus_sim::simulate::Outcome) -> Option<f64> {
    Some(outcome.recovery?.seconds.map_or(1000.0, |seconds| seconds.mean))
}

#[test]
fn a_hot_shard_is_bounded_by_ownership_and_not_by_budgets() {
    check(
        &play_shipped("hot-shard", 3),
        bad_load,
        &[
            ("none", 1.0, 1.0),
            ("everywhere", 32.0, 32.0),
            ("istio-grpc", 243.0, 243.0),
            ("budget-per-request", 10.0, 16.0),
            ("budget-per-success", 8.0, 13.0),
            ("istio-budget", 15.0, 25.0),
            ("ownership", 2.0, 2.0),
            ("ownership + budget 10 % per success", 1.9, 2.0),
            ("ownership R=3 + gate + budget 50 % per success", 1.0, 3.0),
            ("articles", 2.0, 2.2),
            ("recommended", 1.0, 3.0),
        ],
    );
}

#[test]
fn overload_ends_for_those_who_send_less() {
    let experiment = play_shipped("overload", 2);
    check(
        &experiment,
        recovery,
        &[
            ("none", 4.0, 9.0),
            ("everywhere", 1000.0, 1000.0),
            ("top-only", 1000.0, 1000.0),
            ("direct-only", 1000.0, 1000.0),
            ("ownership", 1000.0, 1000.0),
            ("budget 10 % per success", 3.0, 9.0),
            ("ownership + budget 10 % per success", 3.0, 9.0),
            ("ownership-budget", 4.0, 12.0),
            ("ownership R=3 + gate", 3.0, 9.0),
            ("recommended", 3.0, 9.0),
        ],
    );
    check(
        &experiment,
        load,
        &[
            ("everywhere", 28.0, 32.0),
            ("top-only", 1.9, 2.05),
            ("direct-only", 1.9, 2.05),
            ("ownership", 1.9, 2.1),
            ("budget-per-request", 1.6, 1.85),
            ("ownership-budget", 1.05, 1.2),
        ],
    );
}

#[test]
fn in_a_hang_the_mark_helps_and_claims_add_nothing() {
    let rows = [
        ("everywhere", 32.0, 32.0),
        ("ownership", 32.0, 32.0),
        ("ownership-mark", 6.0, 6.0),
        ("recommended", 1.0, 3.0),
    ];
    check(&play_shipped("hang", 1), load, &rows);
    check(&play_shipped("hang-hot-keys", 2), bad_load, &rows);
}

#[test]
fn where_errors_are_independent_retries_help_and_ownership_gives_a_little_away() {
    let experiment = play_shipped("independent", 5);
    // The exact recursion, in percent; half of the interval of five runs is below 0.4.
    check(
        &experiment,
        ok_percent,
        &[
            ("none", 52.6, 53.6),
            ("everywhere", 98.6, 98.9),
            ("top-only", 77.5, 78.5),
            ("leaf edge only", 58.0, 59.0),
            ("mark-only", 92.5, 93.4),
            ("ownership", 92.3, 93.1),
            ("ownership R=3", 99.0, 99.4),
        ],
    );
}

#[test]
fn figures_of_the_mission() {
    for (scenario, rows) in [
        (
            "chain",
            vec![
                ("everywhere", vec![1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]),
                ("10 % budget at every hop", vec![1.0, 1.1, 1.21, 1.331, 1.331, 1.331, 1.331]),
                ("10 % budget at C alone", vec![1.0, 1.0, 1.0, 1.1, 1.1, 1.1, 1.1]),
                ("ownership", vec![1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]),
            ],
        ),
        ("no-claims", vec![("ownership", vec![1.0, 1.0, 1.0, 2.0])]),
        ("no-claims-twice", vec![("ownership", vec![1.0, 1.0, 2.0, 4.0])]),
        ("context-loss", vec![("ownership", vec![1.0, 1.0, 2.0, 4.0])]),
        (
            "eager-client",
            vec![
                ("everywhere", vec![1.0, 500.0]),
                ("ownership", vec![1.0, 500.0]),
                ("ownership-budget", vec![1.0, 1.1]),
            ],
        ),
    ] {
        let experiment = play_shipped(scenario, 1);
        for (policy, expected) in rows {
            let services = &outcome(&experiment, policy).services;
            assert_eq!(services.len(), expected.len());
            for (service, expected) in services.iter().zip(expected) {
                let found = service.per_request.mean;
                let name = &service.name;
                assert!((found - expected).abs() < 1e-3, "{scenario}, {policy}: {name} {found}");
            }
        }
    }
    let experiment = play_shipped("coincidence", 3);
    let unclaimed = |policy: &str| {
        let services = &outcome(&experiment, policy).services;
        let a = services.iter().find(|service| service.name == "A").expect("A");
        a.own_unclaimed.expect("A has errors of its own").mean
    };
    assert!((unclaimed("plain-matrix") - 0.19).abs() < 0.005, "{}", unclaimed("plain-matrix"));
    assert_eq!(unclaimed("ownership"), 0.0);
}

#[test]
fn a_sick_instance_costs_its_share_unless_silence_claims() {
    check(
        &play_shipped("sick-instance", 3),
        ok_percent,
        &[
            ("none", 89.0, 91.0),
            ("everywhere", 100.0, 100.0),
            ("ownership", 89.0, 91.0),
            ("ownership + silent claims", 100.0, 100.0),
        ],
    );
}
