//! What holds of every run, whatever the scenario.

use onus_sim::simulate::{Changes, RunOptions, SHIPPED, Scenario, csv, json, run};
use proptest::prelude::*;

use super::{NEVER, none, play};

/// A scenario with a bit of everything that can end a request.
fn scenario(luck: &Luck) -> String {
    let Luck { policy, timeout, workers, queue, cancellation, deadlines, instances, p } = luck;
    format!(
        "arrivals: {{requests: 300, rate: 300}}\n\
         topology: {{calls: {{services: {{a: [b, c], b: [d], c: [d], d: []}}}}}}\n\
         timeout: {timeout}ms\ncancellation: {cancellation}\ndeadlines: {deadlines}\n\
         service: {{instances: {instances}, work: exponential(5ms)}}\n\
         services:\n  a: {{parallel: {deadlines}}}\n  \
         d: {{workers: {workers}, queue: {queue}, work: 'lognormal(20ms, 0.8)'}}\n\
         faults:\n  - fails: {{service: d, probability: {p}}}\n  \
         - loses-answers: {{service: b, probability: 0.05}}\n  \
         - hangs: {{service: c, probability: 0.02}}\n  \
         - cannot-call: {{service: b, probability: 0.05}}\n\
         policies: [{policy}]\n"
    )
}

#[derive(Clone, Debug)]
struct Luck {
    policy: &'static str,
    timeout: u32,
    workers: u32,
    queue: u32,
    cancellation: bool,
    deadlines: bool,
    instances: u32,
    p: f64,
}

fn luck() -> impl Strategy<Value = Luck> {
    let policies = prop::sample::select(vec![
        "none",
        "everywhere",
        "articles",
        "recommended",
        "ownership",
        "bytedance",
        "linkerd",
        "grpc-throttling",
        "istio-budget",
        "mark-only",
    ]);
    let numbers = (20..400_u32, 1..6_u32, 0..20_u32, 1..4_u32, 0.0..0.9);
    (policies, numbers, any::<bool>(), any::<bool>()).prop_map(
        |(policy, (timeout, workers, queue, instances, p), cancellation, deadlines)| Luck {
            policy,
            timeout,
            workers,
            queue,
            cancellation,
            deadlines,
            instances,
            p,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every request that a service gets ends once, or hangs for good; never twice, and none is
    /// lost. The client outside gets at most one answer for each of its own.
    #[test]
    fn every_request_ends_exactly_once(luck in luck()) {
        let experiment = play(&scenario(&luck));
        let outcome = &experiment.outcomes[0];
        let handled: f64 = outcome.services.iter().map(|service| service.handled.mean).sum();
        prop_assert_eq!(handled, outcome.ended.mean + outcome.unended.mean);
        prop_assert_eq!(outcome.requests.mean, 300.0);
        prop_assert!(outcome.answered.mean <= 300.0);
        if luck.cancellation || luck.deadlines {
            prop_assert!(outcome.answered.mean > 0.0);
        }
    }
}

#[test]
fn the_same_scenario_prints_the_same_bytes_on_any_number_of_threads() {
    for (name, text) in SHIPPED {
        if !["deploy", "hang-hot-keys", "sick-instance"].contains(name) {
            continue;
        }
        let changes = Changes { seeds: Some(2), sweep: None };
        let scenario = Scenario::load(name, text, &changes, &none).expect("a shipped scenario");
        let print = |threads| {
            let options = RunOptions { threads, stop: &NEVER, progress: &|| () };
            let experiment = run(&scenario, &options);
            (json(&experiment), csv(&experiment))
        };
        assert_eq!(print(1), print(3), "{name}");
    }
}

#[test]
fn seeds_are_luck_of_their_own() {
    let text = "arrivals: {requests: 500}\nseeds: SEEDS\ntopology: {chain: [a, b]}\n\
                faults: [{fails: {service: b, probability: 0.5}}]\npolicies: [none]\n";
    let two = play(&text.replace("SEEDS", "2"));
    assert!(two.outcomes[0].availability.half_width > 0.0);
    assert_eq!(two.outcomes[0].runs, 2);
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let text = "arrivals: {requests: 500000}\ntopology: {chain: [a, b]}\n\
                policies: [none, everywhere]\n";
    let scenario = Scenario::load("x", text, &Changes::default(), &none).expect("a scenario");
    let stop = std::sync::atomic::AtomicBool::new(true);
    let experiment = run(&scenario, &RunOptions { threads: 1, stop: &stop, progress: &|| () });
    assert!(experiment.partial && experiment.outcomes[0].interrupted);
    assert_eq!(experiment.outcomes.len(), 1, "the second policy is not begun");
    assert!(experiment.outcomes[0].attempts.mean > 0.0, "there is something to see");
    assert!(json(&experiment).contains("\"partial\": true"));
}
