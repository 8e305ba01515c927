//! A retry is made, or not made, for the reason that the decision table gives.
//!
//! In each row a service makes one call and answers with what comes back, claims and all. The row
//! says which attempts the callee saw, and what the service's own answer says.

use std::time::Duration;

use http::{HeaderValue, Method, Request};
use onus::{CallError, ErrorSet, Mode, Onus, OnusBuilder, RetryPolicy};
use tower::Layer;

use crate::cast::{Callee, Pieces, Reply, ask, outcome, paused, relay, said, serve};

struct Row {
    configure: fn(OnusBuilder) -> OnusBuilder,
    request: Request<Pieces>,
    script: Vec<Reply>,
}

/// `attempts`: number and mark of each, as the callee saw them. `answer`: status and claim of the
/// service's answer. `stop`: why the call failed for good.
#[track_caller]
fn check(row: Row, attempts: &[&str], answer: &str, stop: Option<&str>) {
    let (seen, response) = paused(async {
        let onus = (row.configure)(Onus::builder("checkout")).build().unwrap();
        let callee = Callee::new(row.script);
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |request| relay(client.clone(), request));
        let response = ask(&mut node, row.request).await;
        (callee.attempts(), response)
    });
    assert_eq!(seen, attempts);
    let said = said(response.headers());
    assert_eq!(format!("{} {said}", response.status().as_u16()), answer);
    assert_eq!(outcome(&response).map(|outcome| outcome.stop.as_str()), stop);
}

fn row(configure: fn(OnusBuilder) -> OnusBuilder, script: impl Into<Vec<Reply>>) -> Row {
    Row { configure, request: request(Method::GET), script: script.into() }
}

fn request(method: Method) -> Request<Pieces> {
    let mut request = Request::new(Pieces::sized("17 EUR"));
    *request.method_mut() = method;
    request
}

impl Row {
    fn method(mut self, method: Method) -> Self {
        self.request = request(method);
        self
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.request.headers_mut().insert(name, HeaderValue::from_static(value));
        self
    }
}

fn two(builder: OnusBuilder) -> OnusBuilder {
    builder.enforce().retry("payments", policy())
}

/// Two attempts, without a limit that the test does not mean.
fn policy() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes()
}

#[test]
fn nothing_is_retried_unless_it_is_configured() {
    // [decide-5] [decide-17] [criteria-3] [claim-5] [mode-1]
    let fails = || [Reply::says("claimed"), Reply::ok()];
    let stop = Some("not-configured");
    check(row(|b| b, fails()), &["-"], "503 claimed handoff", stop);
    check(row(OnusBuilder::enforce, fails()), &["-"], "503 claimed handoff", stop);
    let another = |b: OnusBuilder| b.enforce().retry("ledger", policy());
    check(row(another, fails()), &["-"], "503 claimed handoff", stop);
    let one = |b: OnusBuilder| b.enforce().retry("payments", RetryPolicy::attempts(1));
    check(row(one, fails()), &["-"], "503 claimed handoff", stop);
    let only_502 = |b: OnusBuilder| {
        let errors = [CallError::Http(502)].into_iter().collect();
        b.enforce().retry("payments", policy().errors(errors))
    };
    check(row(only_502, fails()), &["-"], "503 claimed handoff", stop);
}

#[test]
fn methods_are_retried_that_are_safe_or_named() {
    // [decide-16]
    let fails = || [Reply::says("claimed"), Reply::ok()];
    let unsafe_too = |b: OnusBuilder| b.retry("payments", policy().unsafe_methods());
    let named = |b: OnusBuilder| b.retry_procedure("payments", "POST", policy());
    for safe in [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE] {
        check(row(two, fails()).method(safe), &["-", "2"], "200 nothing", None);
    }
    let (once, stop) = ("503 claimed handoff", Some("not-configured"));
    for unsafe_one in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        check(row(two, fails()).method(unsafe_one.clone()), &["-"], once, stop);
        check(row(unsafe_too, fails()).method(unsafe_one), &["-", "2"], "200 nothing", None);
    }
    check(row(named, fails()).method(Method::POST), &["-", "2"], "200 nothing", None);
    check(row(named, fails()).method(Method::PUT), &["-"], once, stop);
    check(row(named, fails()).method(Method::GET), &["-"], once, stop);
}

#[test]
fn claim_of_the_last_attempt_decides() {
    // [decide-1] [decide-8] [decide-12] [term-2] [criteria-1] [criteria-2] [claim-8] [mode-5]
    // [mode-6] [attempt-1] [attempt-3] [mark-3] [mark-4]
    let observe = |b: OnusBuilder| b.retry("payments", policy());
    let three = |b: OnusBuilder| {
        let policy = RetryPolicy::attempts(3).no_budget().no_probes();
        b.enforce().retry("payments", policy)
    };
    let (claimed, unclaimed) = (|| Reply::says("claimed"), || Reply::says("unclaimed"));
    let (exhausted, suppressed) = ("503 unclaimed exhausted", "503 unclaimed suppressed");
    check(row(two, [claimed()]), &["-", "2"], exhausted, Some("exhausted"));
    check(row(two, [claimed(), Reply::ok()]), &["-", "2"], "200 nothing", None);
    check(row(two, [unclaimed()]), &["-"], suppressed, Some("suppressed"));
    check(row(three, [claimed()]), &["-", "2", "3"], exhausted, Some("exhausted"));
    check(row(three, [claimed(), unclaimed()]), &["-", "2"], suppressed, Some("suppressed"));
    check(row(two, [Reply::status(503)]), &["-", "2 marked"], exhausted, Some("exhausted"));
    check(row(two, [Reply::says("nonsense")]), &["-", "2 marked"], exhausted, Some("exhausted"));
    let silent = Reply::says("claimed;kind=silent");
    check(row(two, [silent]), &["-", "2 marked"], exhausted, Some("exhausted"));
    // An observing caller retries what the claim would have stopped, and says so above.
    check(row(observe, [unclaimed()]), &["-", "2"], suppressed, Some("exhausted"));
    check(row(observe, [unclaimed(), Reply::ok()]), &["-", "2"], "200 nothing", None);
    let shield = Reply::says("unclaimed;kind=shield");
    check(row(observe, [shield]), &["-"], suppressed, Some("suppressed"));
    // Somebody below has made the attempts already.
    let third = Reply::says("claimed;attempt=3");
    check(row(two, [third]), &["-"], exhausted, Some("exhausted"));
}

#[test]
fn answers_are_errors_or_not() {
    // [term-4] [claim-9]
    for status in [429, 500, 502, 503, 504, 599] {
        let expected = format!("{status} unclaimed exhausted");
        let stop = Some("exhausted");
        check(row(two, [Reply::status(status)]), &["-", "2 marked"], &expected, stop);
    }
    for status in [200, 204, 302, 400, 401, 404, 409, 499] {
        check(row(two, [Reply::status(status)]), &["-"], &format!("{status} nothing"), None);
    }
    let strict = |b: OnusBuilder| {
        let failures = [CallError::Http(404)].into_iter().collect();
        two(b).failures("payments", failures)
    };
    // A failure of the callee, which the policy does not list, and no error of this service.
    check(row(strict, [Reply::status(404)]), &["-"], "404 nothing", Some("not-configured"));
    check(row(strict, [Reply::status(503)]), &["-"], "503 claimed own", None);
}

#[test]
fn lost_answers_are_retried_with_the_mark() {
    // [mark-1] [mark-3] [decide-6]
    let lost = || row(two, [Reply::breaks()]);
    check(lost(), &["-", "2 marked"], "502 unclaimed exhausted", None);
    check(row(two, [Reply::breaks(), Reply::ok()]), &["-", "2 marked"], "200 nothing", None);
    let below = |row: Row| row.header("onus-mark", "1");
    check(below(lost()), &["- marked"], "502 unclaimed marked", None);
    let missing = row(two, [Reply::status(503)]);
    check(below(missing), &["- marked"], "503 unclaimed marked", Some("marked"));
    let seen = row(two, [Reply::says("claimed")]);
    let twice = &["- marked", "2 marked"];
    check(below(seen), twice, "503 unclaimed exhausted", Some("exhausted"));
    let observing = row(|b| b.retry("payments", policy()), [Reply::status(503)]);
    check(below(observing), twice, "503 unclaimed marked", Some("exhausted"));
}

#[test]
fn a_request_that_is_a_retry_may_be_retried_below() {
    // [attempt-1] S75
    for (name, value) in [("onus-attempt", "2"), ("x-envoy-attempt-count", "3")] {
        let again = |script: [Reply; 2]| row(two, script).header(name, value);
        let heals = [Reply::says("claimed"), Reply::ok()];
        check(again(heals), &["-", "2"], "200 nothing", None);
        let fails = [Reply::says("claimed"), Reply::says("claimed")];
        check(again(fails), &["-", "2"], "503 unclaimed exhausted", Some("exhausted"));
        // Silence too: the number is not the mark.
        let lost = [Reply::breaks(), Reply::ok()];
        check(again(lost), &["-", "2 marked"], "200 nothing", None);
    }
}

#[test]
fn limits_stop_retries() {
    // [decide-2] [decide-4] [decide-9] [decide-11] [criteria-2] [criteria-3]
    let claimed = || Reply::says("claimed");
    let empty = |b: OnusBuilder| {
        let policy = RetryPolicy::attempts(2).budget_percent(0).budget_min_per_second(0);
        b.enforce().retry("payments", policy)
    };
    let stop = Some("budget-denied");
    check(row(empty, [claimed()]), &["-"], "503 unclaimed budget-denied", stop);
    let short = |b: OnusBuilder| {
        let policy = policy().deadline(Duration::from_secs(1));
        b.enforce().retry("payments", policy.min_attempt_time(Duration::from_secs(2)))
    };
    check(row(short, [claimed()]), &["-"], "503 claimed handoff", Some("no-time"));
    let refuses = claimed().header("grpc-retry-pushback-ms", "-1");
    check(row(two, [refuses]), &["-"], "503 unclaimed pushback", Some("pushback"));
    let long = claimed().header("retry-after", "3600");
    check(row(two, [long]), &["-"], "503 unclaimed pushback", Some("pushback"));
}

#[test]
fn layers_below_are_counted() {
    // [attempt-4] [decide-15] [criteria-1]
    let declared = |b: OnusBuilder| b.enforce().declared_retries("payments", 3, errors(503));
    let stacked = |b: OnusBuilder| {
        let policy = policy().stacked();
        b.enforce().declared_retries("payments", 3, errors(503)).retry("payments", policy)
    };
    let stop = Some("not-configured");
    let listed = || Reply::status(503);
    check(row(declared, [listed()]), &["-"], "503 unclaimed not-configured", stop);
    check(row(declared, [Reply::status(500)]), &["-"], "500 claimed silent handoff", stop);
    let says_one = Reply::says("claimed;attempt=1");
    check(row(declared, [says_one]), &["-"], "503 claimed handoff", stop);
    let twice = &["-", "2 marked"];
    check(row(stacked, [listed()]), twice, "503 unclaimed exhausted", Some("exhausted"));
}

fn errors(status: u16) -> ErrorSet {
    [CallError::Http(status)].into_iter().collect()
}

#[test]
fn classes_decide_who_is_blamed() {
    // [claim-3] [class-9]
    let optional = |b: OnusBuilder| two(b).optional("payments");
    let required = |b: OnusBuilder| two(b).required("payments");
    let fails = || [Reply::says("claimed")];
    let stop = Some("exhausted");
    check(row(optional, fails()), &["-", "2"], "503 claimed own", stop);
    check(row(required, fails()), &["-", "2"], "503 unclaimed exhausted", stop);
}

#[test]
fn strangers_are_not_believed() {
    // [trust-2] [decide-3]
    let untrusted = |b: OnusBuilder| two(b).untrusted("payments");
    let stop = Some("exhausted");
    let fails = row(untrusted, [Reply::says("unclaimed")]);
    check(fails, &["-", "-"], "503 unclaimed exhausted", stop);
    let lost = row(untrusted, [Reply::breaks(), Reply::ok()]).header("onus-mark", "1");
    check(lost, &["-"], "502 unclaimed marked", None);
    let refuses = Reply::status(503).header("grpc-retry-pushback-ms", "-1");
    let stop = Some("not-configured");
    check(row(untrusted, [refuses]), &["-"], "503 claimed silent handoff", stop);
}

#[test]
fn mode_off_only_keeps_the_configured_retries() {
    // [mode-2] [mode-3]
    let off = |b: OnusBuilder| two(b).mode(Mode::Off);
    let unclaimed = || Reply::says("unclaimed;reason=exhausted");
    let passed_on = "503 unclaimed exhausted";
    check(row(off, [unclaimed()]), &["-", "-"], passed_on, Some("exhausted"));
    check(row(off, [Reply::status(503)]), &["-", "-"], "503 nothing", Some("exhausted"));
    let copied = row(off, [Reply::ok()]).header("onus-mark", "1").header("onus-attempt", "7");
    check(copied, &["7 marked"], "200 nothing", None);
}

#[test]
fn applications_cannot_copy_the_number_or_the_mark() {
    // [attempt-1] [mark-2] [wire-8] [wire-9]
    let copied = row(two, [Reply::says("claimed")]).header("onus-attempt", "7");
    check(copied, &["-", "2"], "503 unclaimed exhausted", Some("exhausted"));
    let silent = row(|b| b, [Reply::says("unclaimed;reason=exhausted")]);
    check(silent, &["-"], "503 unclaimed suppressed", Some("not-configured"));
}
