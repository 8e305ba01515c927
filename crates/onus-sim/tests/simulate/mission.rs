//! The tables of the published articles, cell by cell: the closed form as a fraction, and the
//! simulated count beside it.

use onus_core::{CalleeClaim, Claim};
use onus_sim::simulate::{Changes, Experiment, Outcome, RunOptions, Scenario, run, shipped};

use super::{NEVER, none, outcome, play};

fn play_once(name: &str) -> Experiment {
    let text = shipped(name).expect("a shipped scenario");
    let changes = Changes { seeds: Some(1), sweep: None };
    let scenario = Scenario::load(name, text, &changes, &none).expect("a scenario");
    run(&scenario, &RunOptions { threads: 2, stop: &NEVER, progress: &|| () })
}

/// That each service handles this many requests for one from outside, by formula and by count.
#[track_caller]
fn check(experiment: &Experiment, policy: &str, expected: &[&str]) {
    let outcome = outcome(experiment, policy);
    let exact = outcome.exact.as_ref().unwrap_or_else(|| panic!("{policy} has no closed form"));
    let fractions: Vec<_> = exact.load.iter().map(ToString::to_string).collect();
    assert_eq!(fractions, expected, "{}, {policy}", experiment.scenario);
    for (service, exact) in outcome.services.iter().zip(&exact.load) {
        let off = (service.per_request.mean - exact.value()).abs();
        let tolerance = if exact.is_whole() { 1e-12 } else { 1e-3 };
        assert!(off <= tolerance, "{policy}: {} {:?}", service.name, service.per_request);
    }
}

#[test]
fn one_service_of_seven_fails() {
    let chain = play_once("chain");
    check(&chain, "everywhere", &["1", "2", "4", "8", "8", "8", "8"]);
    let tenth = "1331/1000";
    let budget = ["1", "11/10", "121/100", tenth, tenth, tenth, tenth];
    check(&chain, "10 % budget at every hop", &budget);
    let once = ["1", "1", "1", "11/10", "11/10", "11/10", "11/10"];
    check(&chain, "10 % budget at C alone", &once);
    check(&chain, "ownership-budget", &once);
    check(&chain, "ownership", &["1", "1", "1", "2", "2", "2", "2"]);
}

#[test]
fn availability_after_retries_under_a_budget() {
    let experiment = play_once("availability");
    let of_budget = |outcome: &&Outcome| outcome.policy == "10 % budget";
    let mut columns = experiment.outcomes.iter().filter(of_budget);
    for (error, after) in [
        (0.001, "999999/1000000"),
        (0.01, "9999/10000"),
        (0.05, "399/400"),
        (0.1, "99/100"),
        (0.2, "22/25"),
        (0.3, "77/100"),
    ] {
        let outcome = columns.next().expect("a column");
        assert_eq!(outcome.value, Some(error));
        let exact = outcome.exact.as_ref().expect("a closed form").availability;
        assert_eq!(exact.to_string(), after);
        // A finite bucket loses a little where errors just meet it.
        let off = (outcome.availability.mean - exact.value()).abs();
        assert!(off < 0.006, "{error}: {:?}", outcome.availability);
    }
    assert!(columns.next().is_none());
}

/// The published matrix: the caller is B, its callee C. What B's own caller reads, and how often B
/// calls C.
#[test]
fn decision_matrix() {
    for (row, topology, culprit, claim, calls) in [
        ("callee ok", "[B, C]", "B", Claim::Claimed, 1.0),
        ("callee without a claim", "[B, C]", "C", Claim::Unclaimed, 2.0),
        ("callee claimed", "[B, C]", "C", Claim::Unclaimed, 2.0),
        ("callee unclaimed", "[B, C, D]", "D", Claim::Unclaimed, 1.0),
    ] {
        let cooperates = row != "callee without a claim";
        let experiment = play(&format!(
            "arrivals: {{requests: 10}}\ntopology: {{chain: {topology}}}\nbackoff: none\n\
             services: {{C: {{onus: {cooperates}}}}}\nfaults: [{{fails: {{service: {culprit}}}}}]\n\
             policies: [plain-matrix, ownership]\n"
        ));
        for outcome in &experiment.outcomes {
            assert_eq!(outcome.last_answer, Some(Some(CalleeClaim::Reply(claim))), "{row}");
            assert_eq!(outcome.services[1].per_request.mean, calls, "{row}, {}", outcome.policy);
        }
    }
}

#[test]
fn disturbances_stay_local() {
    check(&play_once("no-claims"), "ownership", &["1", "1", "1", "2"]);
    check(&play_once("no-claims-twice"), "ownership", &["1", "1", "2", "4"]);
    let lost = play_once("context-loss");
    check(&lost, "everywhere", &["1", "2", "4", "8"]);
    check(&lost, "ownership", &["1", "1", "2", "4"]);
    // With five more services left of A: 32 times at A, 64 at B and below.
    let longer = play(
        "arrivals: {requests: 100}\ntopology: {chain: [e, d, c, b, a, A, B, C, D]}\n\
         backoff: none\nservices: {C: {context-lost: true}}\nfaults: [{fails: {service: D}}]\n\
         policies: [everywhere, ownership]\n",
    );
    check(&longer, "everywhere", &["1", "2", "4", "8", "16", "32", "64", "128", "256"]);
    check(&longer, "ownership", &["1", "1", "1", "1", "1", "1", "1", "2", "4"]);
}

#[test]
fn at_least_once_leaves_the_retry_to_who_has_one() {
    let text = shipped("at-least-once").expect("a shipped scenario");
    let persistent = play(&text.replace("probability: 0.1", "probability: 1"));
    check(&persistent, "plain-matrix", &["1", "1", "1"]);
    check(&persistent, "ownership", &["1", "2", "2"]);
}

#[test]
fn coincidences_cost_the_matrix_two_of_ten_own_errors() {
    let experiment = play_once("coincidence");
    let unclaimed = |policy: &str| {
        let services = &outcome(&experiment, policy).services;
        let a = services.iter().find(|service| service.name == "A").expect("A");
        a.own_unclaimed.expect("A has errors of its own").mean
    };
    // 10 · (1 − 0.9²) = 1.9 of 10.
    assert!((unclaimed("plain-matrix") - 0.19).abs() < 0.01, "{}", unclaimed("plain-matrix"));
    assert_eq!(unclaimed("ownership"), 0.0);
}
