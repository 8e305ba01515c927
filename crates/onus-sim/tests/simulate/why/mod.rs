//! What `docs/why.md` shows: the shipped scenarios as they come, one test each, with what must be
//! true of their figures.
//!
//! Figures in quotes are those that an earlier, independent model of the protocol printed for the
//! same scenario. Where it says something else, the reason stands beside the figure. Three reasons
//! come again:
//!
//! - *Buckets*: the model's start with a hundred tokens, the shipped ones empty (protocol §8).
//! - *Gates*: how long they learn depends on the traffic per instance, which the model does not
//!   print. Its figure lies between ours for 1 and for 50 instances.
//! - *Recovery*: ours looks at when requests came, the model at when they were answered, a second
//!   or two later.

mod page;

use onus_sim::simulate::{Changes, Experiment, RunOptions, Scenario, run, shipped};

use super::figures::{
    BAD_LOAD, LOAD, OK, RECOVERY, check_never_recovers, check_order, check_printed, check_sure,
    check_within, figure,
};
use super::{NEVER, none, outcome};

/// A shipped scenario as it comes, checked against the page.
#[track_caller]
fn shown(name: &str) -> Experiment {
    let text = shipped(name).expect("a shipped scenario");
    let scenario = Scenario::load(name, text, &Changes::default(), &none).expect("a scenario");
    let experiment = run(&scenario, &RunOptions { threads: 2, stop: &NEVER, progress: &|| () });
    page::check(&experiment);
    experiment
}

/// That requests handled at each service, for one from outside, are these.
#[track_caller]
fn check_counts(experiment: &Experiment, policy: &str, expected: &[f64]) {
    let services = &outcome(experiment, policy).services;
    let found: Vec<_> = services.iter().map(|service| service.per_request.mean).collect();
    let near = found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-3);
    assert!(near && found.len() == expected.len(), "{policy}: {found:?}");
}

#[test]
fn page_has_no_figures_that_nothing_checks() {
    let (scenarios, charts) = page::contents();
    assert_eq!(scenarios, SHOWN);
    for chart in charts {
        let of_scenario = SHOWN.iter().any(|name| chart.starts_with(&format!("{name}-")));
        assert!(of_scenario && chart.ends_with(".svg"), "{chart}");
    }
}

/// The scenarios with a test below, in the order of the page.
const SHOWN: [&str; 10] = [
    "chain",
    "incident-2025-11-18",
    "hot-shard",
    "overload",
    "hang-hot-keys",
    "independent",
    "flaky-leaf",
    "sick-instance",
    "eager-client",
    "large-fleet",
];

#[test]
fn chain_has_the_figures_of_the_articles() {
    let experiment = shown("chain");
    for (policy, expected) in [
        ("everywhere", [1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0]),
        ("10 % budget at every hop", [1.0, 1.1, 1.21, 1.331, 1.331, 1.331, 1.331]),
        ("10 % budget at C alone", [1.0, 1.0, 1.0, 1.1, 1.1, 1.1, 1.1]),
        ("ownership", [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0]),
    ] {
        check_counts(&experiment, policy, &expected);
    }
}

#[test]
fn incident_stops_what_was_published() {
    let experiment = shown("incident-2025-11-18");
    let at = |hops: f64| {
        let found = experiment
            .outcomes
            .iter()
            .find(|outcome| outcome.value == Some(hops) && outcome.policy == "ownership-budget");
        found.and_then(|outcome| outcome.stopped).expect("the policy at this depth")
    };
    for outcome in &experiment.outcomes {
        let hops = outcome.value.expect("a sweep") as i32;
        let load = outcome.load_factor.expect("a load").mean;
        // 1.1⁴ − 1 and 1.1⁹ − 1 are the 46 % and 135 % that were published.
        let expected = if outcome.policy == "ownership-budget" { 1.1 } else { 1.1_f64.powi(hops) };
        assert!((load - expected).abs() < 2e-3, "{} at {hops}: {load}", outcome.policy);
        let exact = outcome.exact.as_ref().expect("a closed form").load_factor.value();
        assert!((exact - expected).abs() < 1e-9, "{} at {hops}: {exact}", outcome.policy);
    }
    // Per request from outside the direct caller sends 1.1⁹ − 1.1 less, and all together the sum
    // of 1.1¹ to 1.1⁹, less the nine that are left and a tenth.
    let (direct, all) =
        (1.1_f64.powi(9) - 1.1, (1..=9).map(|n| 1.1_f64.powi(n)).sum::<f64>() - 9.1);
    let near = |found: f64, each: f64| (found / 160_000.0 / each - 1.0).abs() < 0.01;
    assert!(near(at(9.0).direct, direct) && near(at(9.0).all, all), "{:?}", at(9.0));
    assert!((195_000.0..205_000.0).contains(&at(9.0).direct), "{:?}", at(9.0));
    assert!((9.0e6..9.6e6).contains(&(10.0 * at(9.0).all)), "{:?}", at(9.0));
}

#[test]
fn hot_shard_is_bounded_by_ownership_and_not_by_budgets() {
    let experiment = shown("hot-shard");
    let rows = [
        ("everywhere", "32"),
        ("ownership", "2.0"),
        ("ownership + budget 10 % per success", "2.0"),
    ];
    check_printed(&experiment, BAD_LOAD, &rows);
    // Buckets: the long run is (5 + 5 + 10 + 11.5 + 12.65 + 13.9) / 5 where the model has 14.2, and
    // (5 + 5 + 9.5 + 9.5 + 9.5 + 9.5) / 5 where it has 12.0.
    check_printed(
        &experiment,
        BAD_LOAD,
        &[("budget-per-request", "11.6"), ("budget-per-success", "9.6")],
    );
    check_order(
        &experiment,
        BAD_LOAD,
        &[
            &["none"],
            &["ownership R=3 + gate + budget 50 % per success", "recommended"],
            &["gate"],
            &["ownership", "ownership + budget 10 % per success"],
            &["articles"],
            &["grpc-throttling", "bytedance"],
            &["budget-per-success"],
            &["budget-per-request"],
            &["istio-budget"],
            &["everywhere"],
            &["istio-grpc"],
        ],
    );
    check_sure(&experiment, BAD_LOAD, &["gate", "articles", "recommended", "istio-budget"]);
}

#[test]
fn fleet_learns_the_slower_the_larger_it_is() {
    let experiment = shown("large-fleet");
    let at = |policy: &str, instances: f64| {
        let mut outcomes = experiment.outcomes.iter();
        let found = outcomes.find(|o| o.policy == policy && o.value == Some(instances));
        found.and_then(BAD_LOAD).expect("the policy at this size").mean
    };
    for instances in [1.0, 10.0, 50.0] {
        assert_eq!(at("ownership", instances), 2.0);
    }
    for policy in ["gate", "articles", "recommended", "recommended without probes"] {
        assert!(at(policy, 1.0) < at(policy, 10.0) && at(policy, 10.0) < at(policy, 50.0));
    }
    // Gates: the model has 9.9 and, of ownership with gate, 2.5.
    assert!(at("gate", 1.0) < 9.9 && at("gate", 50.0) > 9.9);
    let gated = "recommended without probes";
    assert!(at(gated, 1.0) < 2.5 && at(gated, 50.0) > 2.5, "{}", at(gated, 50.0));
    // Three attempts are the bound without probes, however little the gate has learnt.
    assert!(at(gated, 50.0) < 3.0);
}

#[test]
fn overload_ends_for_those_who_send_less() {
    let experiment = shown("overload");
    check_printed(
        &experiment,
        LOAD,
        &[
            ("none", "1.0"),
            ("everywhere", "31"),
            ("top-only", "2.0"),
            ("direct-only", "2.0"),
            ("ownership", "2.0"),
            ("ownership R=3", "3.0"),
            ("ownership-budget", "1.13"),
            ("ownership + budget 10 % per success", "1.03"),
        ],
    );
    // Buckets: 1.77 and 1.17. Gates: 1.26 and 1.06 for one instance at twice this traffic.
    check_within(
        &experiment,
        LOAD,
        &[
            ("budget-per-request", 1.72, 1.77),
            ("budget 10 % per success", 1.10, 1.17),
            ("gate", 1.22, 1.30),
            ("ownership R=3 + gate", 1.06, 1.10),
        ],
    );
    let patient = ["everywhere", "top-only", "direct-only", "ownership", "ownership R=3"];
    check_never_recovers(&experiment, &patient);
    let quick = [
        "none",
        "budget 10 % per success",
        "gate",
        "ownership-budget",
        "ownership + budget 10 % per success",
        "ownership R=3 + gate",
        "articles",
        "recommended",
    ];
    // Recovery: the model has 5 or 6 seconds for all of these, and 46 for the last.
    check_within(&experiment, RECOVERY, &quick.map(|policy| (policy, 4.0, 6.0)));
    check_within(&experiment, RECOVERY, &[("budget-per-request", 36.0, 50.0)]);
}

#[test]
fn hot_keys_that_hang_need_the_mark_and_claims_add_nothing() {
    let experiment = shown("hang-hot-keys");
    let rows = [("everywhere", "32"), ("ownership", "32"), ("ownership-mark", "6")];
    check_printed(&experiment, BAD_LOAD, &rows);
    // Buckets: 12.3 without and 12.2 with ownership.
    let budgets = ["budget 10 % per success", "ownership + budget 10 % per success"];
    let [without, with] = budgets.map(|policy| figure(&experiment, BAD_LOAD, policy));
    assert_eq!(without, with);
    check_order(&experiment, BAD_LOAD, &[&["recommended"], &["ownership-mark"], &budgets[..1]]);
}

#[test]
fn independent_errors_are_what_retries_are_for() {
    // The exact recursion; errors of 10 % at each of six services.
    let percent = [
        ("none", "0.53"),
        ("everywhere", "0.988"),
        ("top-only", "0.78"),
        ("leaf edge only", "0.58"),
        ("mark-only", "0.929"),
        ("ownership", "0.927"),
        ("ownership R=3", "0.9922"),
    ];
    check_printed(&shown("independent"), OK, &percent);
}

#[test]
fn flaky_leaf_is_helped_by_a_third_attempt() {
    let experiment = shown("flaky-leaf");
    // Exact: 0.3 failures for one attempt of the leaf, 0.3² for two and 0.3³ for three; with the
    // mark alone one more for each hop, 0.3⁷. The model's runs are a little off.
    let ok = [
        ("none", "0.70"),
        ("everywhere", "1.00"),
        ("top-only", "0.910"),
        ("leaf edge only", "0.910"),
        ("mark-only", "0.9998"),
        ("ownership", "0.910"),
        ("ownership R=3", "0.973"),
        ("recommended", "0.973"),
    ];
    check_printed(&experiment, OK, &ok);
    let load = [("everywhere", "1.43"), ("top-only", "1.30"), ("ownership", "1.30")];
    check_printed(&experiment, LOAD, &load);
    // Its budget of a tenth is exhausted, but for the floor of one in a second.
    check_order(&experiment, OK, &[&["none"], &["articles"], &["ownership"], &["recommended"]]);
}

#[test]
fn sick_instance_costs_its_share_unless_silence_claims() {
    let healed = [
        ("none", "0.90"),
        ("everywhere", "1.00"),
        ("ownership", "0.90"),
        ("ownership + silent claims", "1.00"),
        ("recommended", "1.00"),
    ];
    check_printed(&shown("sick-instance"), OK, &healed);
}

#[test]
fn eager_client_is_stopped_by_its_budget_alone() {
    let experiment = shown("eager-client");
    check_counts(&experiment, "everywhere", &[1.0, 500.0]);
    check_counts(&experiment, "ownership", &[1.0, 500.0]);
    check_counts(&experiment, "ownership-budget", &[1.0, 1.1]);
}
