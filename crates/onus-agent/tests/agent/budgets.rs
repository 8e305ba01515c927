//! The retry budget of an edge, from the calls that the agent sees.

use std::time::Duration;

use onus_agent::RetryPolicy;

use crate::host::{Reply, Service, Target};

/// Without a body that is known, no call is a repeat of another.
const APART: Target<'static> = Target { body: None, ..Target::GET };

fn service(policy: RetryPolicy) -> Service {
    Service::enforcing(|config| config.retry("b", policy.no_probes()))
}

/// Two attempts, and a budget of so many percent above so many retries per second.
fn policy(percent: u32, floor: u32) -> RetryPolicy {
    RetryPolicy::articles(2).budget_percent(percent).budget_min_per_second(floor)
}

/// Makes this many calls of which every attempt fails; how many of them were retried.
fn fail(service: &Service, calls: usize) -> usize {
    let request = service.request();
    let fails = [Reply::Error("claimed"); 2];
    let played = (0..calls).map(|_| request.call_to("b", &APART).play_while_retried(&fails).1);
    played.filter(|attempts| *attempts == 2).count()
}

fn succeed(service: &Service, calls: usize) {
    let request = service.request();
    for _ in 0..calls {
        request.call_to("b", &APART).play(&[Reply::Ok]);
    }
}

#[test]
fn ten_percent_are_a_tenth_exactly() {
    // [budget-2] [budget-4] [budget-7]
    let edge = service(policy(10, 0));
    assert_eq!(fail(&edge, 1000), 100);
    let page = edge.metrics();
    assert_eq!(page.sum("onus_retries_total", &[("verdict", "made")]), 100.0);
    let denied = page.sum("onus_retries_not_made_total", &[("reason", "budget-denied")]);
    assert_eq!(denied, 900.0);
    let floor = service(policy(10, 1));
    assert_eq!(fail(&floor, 1000), 101, "a new bucket holds one token of the floor");
    let successes = service(policy(50, 0).budget_from_successes());
    assert_eq!(fail(&successes, 1000), 0);
    succeed(&successes, 100);
    assert_eq!(fail(&successes, 1000), 50);
}

#[test]
fn first_attempts_and_repeats_take_no_token() {
    // [budget-1] [budget-4]
    let service = service(policy(100, 0));
    succeed(&service, 3);
    let request = service.request();
    let repeated = Target::GET;
    for _ in 0..5 {
        request.call_to("b", &repeated).play_while_retried(&[Reply::Hang]);
    }
    // Three calls and the first of the five have deposited; nothing was taken.
    let balance = service.metrics().sum("onus_budget_balance", &[]);
    assert_eq!(balance, 4.0);
}

#[test]
fn buckets_are_shared_by_no_two_edges() {
    // [budget-3]
    let service = service(policy(100, 0));
    let request = service.request();
    let other = Target { route: "/other", ..APART };
    for _ in 0..5 {
        request.call_to("b", &other).play(&[Reply::Ok]);
    }
    let page = service.metrics();
    let balance = |route: &str| page.sum("onus_budget_balance", &[("callee_method", route)]);
    assert_eq!((balance("GET /other"), balance("GET /out")), (5.0, 0.0));
    assert_eq!(fail(&service, 1), 1);
    let page = service.metrics();
    assert_eq!(page.sum("onus_budget_balance", &[("callee_method", "GET /other")]), 5.0);
}

#[test]
fn calls_of_an_idle_time_ago_have_left_the_window() {
    // [budget-4] [budget-6]
    for deposit_successes in [false, true] {
        let budget = policy(10, 0).budget_ttl(Duration::from_secs(10));
        let budget = if deposit_successes { budget.budget_from_successes() } else { budget };
        let service = service(budget);
        service.edge(Some(&service.request().inbound), "b", "/out");
        service.pass(Duration::from_millis(100));
        succeed(&service, 1000);
        service.pass(Duration::from_secs(5));
        let within = service.metrics().sum("onus_budget_balance", &[]);
        assert_eq!(within, 100.0, "successes: {deposit_successes}");

        service.pass(Duration::from_millis(500));
        succeed(&service, 1000);
        service.pass(Duration::from_secs(60));
        let own = if deposit_successes { 0 } else { 2 };
        assert_eq!(fail(&service, 20), own, "successes: {deposit_successes}");
    }
}

#[test]
fn a_success_of_an_idle_time_ago_is_not_fresh() {
    // [budget-5] [budget-6]
    let service = service(policy(0, 5).budget_ttl(Duration::from_secs(10)));
    service.edge(Some(&service.request().inbound), "b", "/out");
    service.pass(Duration::from_millis(500));
    succeed(&service, 1);
    service.pass(Duration::from_secs(60));
    assert_eq!(fail(&service, 5), 1, "one token is the floor's whole capacity");
    service.pass(Duration::from_secs(1));
    assert_eq!(fail(&service, 5), 0, "one token in ten seconds");
    // The budget hears of a success up to a second late.
    for _ in 0..2 {
        succeed(&service, 1);
        service.pass(Duration::from_secs(1));
    }
    assert_eq!(fail(&service, 20), 5, "a fresh success grants the floor in full");
}

#[test]
fn a_slow_call_has_deposited_when_it_started() {
    // [budget-4]
    let service = service(policy(100, 0).budget_ttl(Duration::from_secs(10)));
    for (seconds, retried) in [(9, true), (12, false)] {
        let request = service.request();
        let mut call = request.call_to("b", &APART);
        call.send();
        service.pass(Duration::from_secs(seconds));
        let verdict = call.reply(Reply::Silence);
        let is_retry = matches!(verdict, Some(onus_agent::Verdict::Retry(_)));
        assert_eq!(is_retry, retried, "after {seconds} s: {verdict:?}");
        drop(call);
        service.pass(Duration::from_secs(60));
    }
}

#[test]
fn steady_traffic_is_told_every_second() {
    // [budget-6] [budget-9]
    let service = service(policy(10, 0).budget_ttl(Duration::from_secs(10)));
    for _ in 0..600 {
        succeed(&service, 5);
        service.pass(Duration::from_millis(50));
    }
    // 30 s at 100 calls a second: the last ten seconds count, in slots of one.
    let balance = service.metrics().sum("onus_budget_balance", &[]);
    assert!((90.0..=100.0).contains(&balance), "{balance}");
}
