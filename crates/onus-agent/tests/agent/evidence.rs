//! What finished requests teach about edges.

use std::time::Duration;

use onus_agent::{CallError, EdgeClass, Mode, RetryPolicy, Stop, Switches};

use crate::host::{Reply, Service, Target, retries, stopped};

const FAILS: &[Reply] = &[Reply::Error("claimed")];
const OK: &[Reply] = &[Reply::Ok];

/// Counts of an edge: calls ok and failed alone or jointly, each with the caller ok or failed.
fn counts(service: &Service, callee: &str) -> [[f64; 2]; 3] {
    let page = service.metrics();
    [("ok", "false"), ("error", "true"), ("error", "false")].map(|(callee_outcome, isolated)| {
        ["ok", "error"].map(|caller_outcome| {
            let labels = [
                ("callee", callee),
                ("callee_outcome", callee_outcome),
                ("caller_outcome", caller_outcome),
                ("isolated", isolated),
            ];
            page.sum("onus_edge_requests_total", &labels)
        })
    })
}

fn clean(service: &Service) -> [f64; 2] {
    let page = service.metrics();
    ["ok", "error"].map(|outcome| page.sum("onus_clean_requests_total", &[("outcome", outcome)]))
}

#[test]
fn a_request_is_one_count_for_each_edge() {
    // [class-1] [term-1]
    const NONE: [[f64; 2]; 3] = [[0.0; 2]; 3];
    let ok = |failed: bool| [one(failed), [0.0; 2], [0.0; 2]];
    let alone = |failed: bool| [[0.0; 2], one(failed), [0.0; 2]];
    let jointly = |failed: bool| [[0.0; 2], [0.0; 2], one(failed)];
    for failed in [false, true] {
        for (calls, b, c, is_clean) in [
            (&[][..], NONE, NONE, true),
            (&[("b", OK)][..], ok(failed), NONE, true),
            (&[("b", OK), ("b", OK)], ok(failed), NONE, true),
            (&[("b", FAILS)], alone(failed), NONE, false),
            (&[("b", FAILS), ("b", OK)], alone(failed), NONE, false),
            (&[("b", OK), ("b", FAILS)], alone(failed), NONE, false),
            (&[("b", FAILS), ("c", OK)], alone(failed), ok(failed), false),
            (&[("b", FAILS), ("c", FAILS)], jointly(failed), jointly(failed), false),
            (&[("b", FAILS), ("c", FAILS), ("c", OK)], jointly(failed), jointly(failed), false),
        ] {
            let service = Service::new(Mode::Observe, |_| {});
            let request = service.request();
            for (n, (callee, replies)) in calls.iter().enumerate() {
                // Different bodies: none is a repeat of another.
                let body = n.to_string();
                let target = Target { body: Some(&body), ..Target::GET };
                request.call_to(callee, &target).play(replies);
            }
            request.answer(failed, &[]);
            assert_eq!(counts(&service, "b"), b, "b, failed: {failed}: {calls:?}");
            assert_eq!(counts(&service, "c"), c, "c, failed: {failed}: {calls:?}");
            let expected = if is_clean { one(failed) } else { [0.0; 2] };
            assert_eq!(clean(&service), expected, "failed: {failed}: {calls:?}");
        }
    }
}

fn one(failed: bool) -> [f64; 2] {
    if failed { [0.0, 1.0] } else { [1.0, 0.0] }
}

#[test]
fn procedures_are_edges_of_their_own() {
    // [term-1]
    let service = Service::new(Mode::Observe, |_| {});
    for (route, target) in [("/in", "/1"), ("/in", "/2"), ("/other", "/1")] {
        let request = service.request_for(route, &[]);
        request.call_to("b", &Target { route: target, ..Target::GET }).play(FAILS);
        request.ok();
    }
    let page = service.metrics();
    let failed = [("callee_outcome", "error"), ("isolated", "true"), ("caller_outcome", "ok")];
    let edges = page.series("onus_edge_requests_total", &failed);
    assert_eq!(edges.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [1.0; 3]);
}

#[test]
fn only_final_outcomes_count() {
    // [class-1] [class-2] [term-2] [term-3]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    request.call("b").play(&[Reply::Error("claimed"), Reply::Ok]);
    request.ok();
    assert_eq!(counts(&service, "b"), [[1.0, 0.0], [0.0; 2], [0.0; 2]], "healed by its retry");
    // An answer whose body broke has failed after all.
    let request = service.request();
    let mut call = request.call("c");
    call.send();
    call.outbound.ok(false, || service.now());
    call.fail_by(CallError::Reset, None, false);
    drop(call);
    request.ok();
    assert_eq!(counts(&service, "c"), [[0.0; 2], [1.0, 0.0], [0.0; 2]]);
    // A call that belongs to no request says nothing, wherever it is made.
    let request = service.request();
    service.untied_call("d").play(FAILS);
    request.error();
    assert_eq!(counts(&service, "d"), [[0.0; 2]; 3]);
}

#[test]
fn probes_teach_nothing() {
    // [class-2] [probe-4]
    let policy = RetryPolicy::attempts(2).no_budget();
    let service = Service::enforcing(|config| config.retry("b", policy));
    for second in [Reply::Ok, Reply::Error("claimed")] {
        let request = service.request();
        request.call("b").play(&[Reply::Error("unclaimed"), second]);
        request.ok();
        service.pass(Duration::from_secs(10));
    }
    assert_eq!(counts(&service, "b"), [[0.0; 2]; 3]);
    let page = service.metrics();
    let probe =
        |verdict| page.sum("onus_retries_total", &[("cause", "probe"), ("verdict", verdict)]);
    assert_eq!((probe("made"), probe("succeeded")), (2.0, 1.0));
}

/// Requests for `route` in which `b` fails alone.
fn fail_alone(service: &Service, route: &str, requests: usize, caller_fails: bool) {
    for _ in 0..requests {
        let request = service.request_for(route, &[]);
        request.call("b").play(FAILS);
        request.answer(caller_fails, &[]);
    }
}

/// A minute passes, and the next call learns from it.
fn minute(service: &Service) {
    service.pass(Duration::from_secs(60));
    service.untied_call("clock").play(OK);
}

fn class(service: &Service, route: &str) -> EdgeClass {
    let request = service.request_for(route, &[]);
    service.edge(Some(&request.inbound), "b", "/out").class()
}

/// A request in which each of `callees` fails.
fn all_fail(service: &Service, callees: &[&str], caller_fails: bool) {
    let request = service.request();
    for callee in callees {
        request.call(callee).play(FAILS);
    }
    request.answer(caller_fails, &[]);
}

#[test]
fn after_a_minute_an_edge_that_is_survived_is_not_blamed() {
    // [class-3] [claim-3] [fault-4]
    let service = Service::enforcing(|_| {});
    let blamed = "unclaimed;reason=suppressed;attempt=1;origin=\"b\";hops=1";
    let own = "claimed;reason=own;attempt=1;origin=\"a\";hops=0";
    let claim = || {
        let request = service.request();
        request.call("b").play(&[Reply::Error("unclaimed")]);
        request.claim()
    };
    fail_alone(&service, "/in", 30, false);
    service.pass(Duration::from_secs(59));
    service.untied_call("clock").play(OK);
    assert_eq!((class(&service, "/in"), claim().as_str()), (EdgeClass::Unknown, blamed));
    service.pass(Duration::from_secs(1));
    service.untied_call("clock").play(OK);
    assert_eq!((class(&service, "/in"), claim().as_str()), (EdgeClass::FailOpen, own));
    let page = service.metrics();
    let shown = page.sum("onus_edge_class", &[("callee", "b"), ("class", "fail-open")]);
    assert_eq!(shown, 1.0);
    assert_eq!(page.sum("onus_edge_class", &[("callee", "b"), ("class", "unknown")]), 0.0);
    assert_eq!(class(&service, "/other"), EdgeClass::Unknown, "another caller procedure");
}

#[test]
fn an_edge_that_takes_its_caller_down_is_fail_close() {
    // [class-4] [class-5]
    for (failures, survived, expected) in [
        (25, 0, EdgeClass::FailClose),
        (9, 0, EdgeClass::Unknown),
        (13, 12, EdgeClass::Unknown),
        (0, 25, EdgeClass::FailOpen),
    ] {
        let service = Service::new(Mode::Observe, |_| {});
        fail_alone(&service, "/in", failures, true);
        fail_alone(&service, "/in", survived, false);
        minute(&service);
        assert_eq!(class(&service, "/in"), expected, "{failures} of {}", failures + survived);
    }
}

#[test]
fn a_class_is_left_when_the_callee_changes_its_role() {
    // [class-3] [class-4] [class-6]
    for (at_first, in_the_end) in
        [(EdgeClass::FailOpen, EdgeClass::FailClose), (EdgeClass::FailClose, EdgeClass::FailOpen)]
    {
        let service = Service::new(Mode::Observe, |_| {});
        let caller_fails = |class| class == EdgeClass::FailClose;
        for _ in 0..4 {
            fail_alone(&service, "/in", 100, caller_fails(at_first));
            minute(&service);
            assert_eq!(class(&service, "/in"), at_first);
        }
        // One minute weighs at most a quarter of what is remembered, and is counted once.
        let mut seen = Vec::new();
        for _ in 0..8 {
            fail_alone(&service, "/in", 100, caller_fails(in_the_end));
            minute(&service);
            seen.push(class(&service, "/in"));
        }
        let unknown = seen.iter().filter(|class| **class == EdgeClass::Unknown).count();
        assert_eq!(seen[0], at_first, "a quarter is not enough: {seen:?}");
        assert_eq!(seen[7], in_the_end, "{seen:?}");
        assert!((2..=6).contains(&unknown), "{seen:?}");
    }
}

#[test]
fn evidence_is_dropped_after_thirty_days() {
    // [class-7]
    let service = Service::new(Mode::Observe, |_| {});
    fail_alone(&service, "/in", 30, false);
    minute(&service);
    const DAY: Duration = Duration::from_secs(24 * 3600);
    for (days, expected) in [(29, EdgeClass::FailOpen), (1, EdgeClass::Unknown)] {
        service.pass(DAY * days);
        service.untied_call("clock").play(OK);
        assert_eq!(class(&service, "/in"), expected, "after {days} more days");
    }
}

#[test]
fn a_caller_in_trouble_learns_nothing() {
    // [class-8]
    for (clean, clean_failed, expected) in
        [(9, 9, EdgeClass::FailClose), (20, 2, EdgeClass::FailClose), (20, 3, EdgeClass::Unknown)]
    {
        let service = Service::new(Mode::Observe, |_| {});
        for n in 0..clean {
            service.request().answer(n < clean_failed, &[]);
        }
        fail_alone(&service, "/in", 30, true);
        fail_alone(&service, "/other", 30, true);
        minute(&service);
        assert_eq!(class(&service, "/in"), expected, "{clean_failed} of {clean}");
        assert_eq!(class(&service, "/other"), EdgeClass::FailClose, "a procedure by itself");
        // What was frozen is not learnt later.
        minute(&service);
        assert_eq!(class(&service, "/in"), expected, "{clean_failed} of {clean}, later");
        // Each minute is frozen by its own requests.
        for n in 0..clean {
            service.request_for("/third", &[]).answer(n >= clean_failed, &[]);
        }
        minute(&service);
        for n in 0..clean {
            service.request_for("/third", &[]).answer(n < clean_failed, &[]);
        }
        fail_alone(&service, "/third", 30, true);
        minute(&service);
        assert_eq!(class(&service, "/third"), expected, "{clean_failed} of {clean}, again");
        fail_alone(&service, "/in", 30, true);
        minute(&service);
        assert_eq!(class(&service, "/in"), EdgeClass::FailClose, "the minute after");
    }
}

#[test]
fn an_edge_that_stops_being_survived_is_learnt_from_its_own_failures() {
    // [class-13]
    let service = Service::new(Mode::Observe, |_| {});
    fail_alone(&service, "/in", 100, false);
    minute(&service);
    assert_eq!(class(&service, "/in"), EdgeClass::FailOpen);
    for _ in 0..6 {
        for _ in 0..20 {
            service.request().answer(false, &[]);
        }
        fail_alone(&service, "/in", 30, true);
        minute(&service);
    }
    assert_eq!(class(&service, "/in"), EdgeClass::FailClose);
}

#[test]
fn an_edge_known_to_be_survived_hides_neither_callees_nor_trouble() {
    // [class-1] [class-8]
    for (caller_fails, expected) in [(1, EdgeClass::FailClose), (20, EdgeClass::Unknown)] {
        let service = Service::new(Mode::Observe, |_| {});
        fail_alone(&service, "/in", 100, false);
        minute(&service);
        // From now on it fails in every request.
        for n in 0..40 {
            all_fail(&service, &["b"], n < caller_fails);
        }
        for _ in 0..30 {
            all_fail(&service, &["b", "c"], true);
        }
        minute(&service);
        let request = service.request();
        let class = service.edge(Some(&request.inbound), "c", "/out").class();
        assert_eq!(class, expected, "{caller_fails} of 40 by itself");
    }
}

#[test]
fn the_brake_halves_the_share_of_an_edge_whose_probes_succeed() {
    // [brake-1] [brake-2] [mode-9]
    for acts in [false, true] {
        let policy = RetryPolicy::attempts(2).no_budget();
        let service = Service::enforcing(|config| {
            config.retry("b", policy);
            if acts {
                config.brake_acts("b");
            }
        });
        for _ in 0..50 {
            let request = service.request();
            request.call("b").play(&[Reply::Error("unclaimed"), Reply::Ok]);
            request.ok();
            service.pass(Duration::from_secs(10));
        }
        let halvings = service.metrics().sum("onus_brake_halvings", &[("callee", "b")]);
        assert_eq!(halvings, f64::from(u8::from(acts)), "acts: {acts}");
        // Trees of the upper half of the lots are observed on this edge from here on.
        for (bits, inside) in [(0, true), (4_999, true), (5_000, !acts), (9_999, !acts)] {
            let request = service.request_drawn(&[], bits);
            let call = request.call("b");
            let arm = if inside { "enforce" } else { "control" };
            assert_eq!(call.outbound.arm().as_str(), arm, "acts: {acts}, lot {bits}");
            assert_eq!(request.call("c").outbound.arm().as_str(), "enforce", "another edge");
        }
    }
}

#[test]
fn a_switch_to_off_keeps_what_was_learnt() {
    // [mode-3] [fault-4]
    let service = Service::enforcing(|config| config.retry("c", retries(2)));
    fail_alone(&service, "/other", 30, false);
    minute(&service);
    let off = Switches { mode: Some(Mode::Off), ..Switches::default() };
    service.agent.switch(onus_agent::Source::Admin, &off, service.now());
    assert_eq!(class(&service, "/other"), EdgeClass::FailOpen);
    let verdict = service.request().call("c").play(&[Reply::Silence, Reply::Silence]);
    assert_eq!(verdict, stopped(Stop::Exhausted));
}
