//! Time limits and waits, in virtual time.

use std::time::{Duration, SystemTime};

use http::{HeaderValue, Request, header};
use onus::{CallOutcome, Onus, RetryPolicy};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, get, outcome, paused, read};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Attempts without a wait between them that the test does not mean.
fn attempts(attempts: u32) -> RetryPolicy {
    RetryPolicy::attempts(attempts).no_budget().no_probes().backoff(ms(0), ms(0))
}

struct Ended {
    answer: Result<u16, &'static str>,
    outcome: Option<CallOutcome>,
    /// When each attempt came, in milliseconds.
    attempts: Vec<u128>,
    /// When the response head, or the error, was there.
    at: u128,
}

async fn call(policy: RetryPolicy, script: Vec<Reply>, request: Request<Pieces>) -> Ended {
    let onus = Onus::builder("checkout").enforce().retry("payments", policy).build().unwrap();
    let callee = Callee::new(script);
    let client = onus.outbound("payments").layer(callee.clone());
    let start = Instant::now();
    let answer = client.oneshot(request).await;
    Ended {
        outcome: answer.as_ref().ok().and_then(outcome).cloned(),
        answer: answer.map(|response| response.status().as_u16()).map_err(|broken| broken.0),
        attempts: callee.seen().iter().map(|seen| seen.at.as_millis()).collect(),
        at: start.elapsed().as_millis(),
    }
}

/// `attempts`: when each came. `ends`: status, and why there was no further attempt, and when.
#[track_caller]
fn check(policy: RetryPolicy, script: &[Reply], attempts: &[u128], ends: (u16, &str, u128)) {
    let ended = paused(call(policy, script.to_vec(), get("/")));
    assert_eq!(ended.attempts, attempts);
    let stop = ended.outcome.map_or("none", |outcome| outcome.stop.as_str());
    assert_eq!((ended.answer.unwrap(), stop, ended.at), ends);
}

#[test]
fn attempts_and_calls_have_limits() {
    // [decide-9] [decide-19]
    let (hangs, ok) = (Reply::hangs, Reply::ok);
    let per_try = || attempts(2).per_try_timeout(ms(100));
    check(per_try(), &[hangs()], &[0, 100], (504, "exhausted", 200));
    check(per_try(), &[hangs(), ok()], &[0, 100], (200, "none", 100));
    check(per_try(), &[ok().after(ms(99))], &[0], (200, "none", 99));
    check(per_try(), &[ok().after(ms(101)), ok().after(ms(50))], &[0, 100], (200, "none", 150));
    check(
        per_try(),
        &[Reply::says("claimed").after(ms(60)), hangs()],
        &[0, 60],
        (504, "exhausted", 160),
    );

    let overall = || attempts(2).deadline(ms(250));
    check(overall(), &[hangs()], &[0], (504, "no-time", 250));
    check(overall(), &[ok().after(ms(249))], &[0], (200, "none", 249));
    check(
        overall(),
        &[Reply::says("claimed").after(ms(60)), hangs()],
        &[0, 60],
        (504, "exhausted", 250),
    );

    let both = |overall| attempts(3).per_try_timeout(ms(100)).deadline(ms(overall));
    check(both(150), &[hangs()], &[0, 100], (504, "no-time", 150));
    check(both(109), &[hangs()], &[0], (504, "no-time", 100));
    check(both(110), &[hangs()], &[0, 100], (504, "no-time", 110));
    check(both(500), &[hangs()], &[0, 100, 200], (504, "exhausted", 300));

    // A policy without retries can have limits as well.
    let once = attempts(1).per_try_timeout(ms(100));
    check(once, &[hangs()], &[0], (504, "not-configured", 100));
}

#[test]
fn an_error_that_comes_with_the_end_of_the_time_is_that_end() {
    // [deadline-5]
    let breaks = || Reply::breaks().after(ms(100));
    let per_try = attempts(1).per_try_timeout(ms(100));
    check(per_try, &[breaks()], &[0], (504, "not-configured", 100));
    check(attempts(1).deadline(ms(100)), &[breaks()], &[0], (504, "not-configured", 100));
    let ended = paused(call(attempts(1).deadline(ms(101)), vec![breaks()], get("/")));
    assert_eq!((ended.answer, ended.at), (Err("the connection broke"), 100));
}

#[test]
fn each_limit_holds_whatever_the_other_is() {
    // S31
    let late = [Reply::ok().after(ms(300))];
    let limited = |per_try: Option<u64>, overall: Option<u64>| {
        let policy = attempts(3);
        let policy =
            per_try.into_iter().fold(policy, |policy, time| policy.per_try_timeout(ms(time)));
        overall.into_iter().fold(policy, |policy, time| policy.deadline(ms(time)))
    };
    let whole = (200, "none", 300);
    check(limited(None, None), &late, &[0], whole);
    check(limited(None, Some(100)), &late, &[0], (504, "no-time", 100));
    check(limited(None, Some(350)), &late, &[0], whole);
    let thrice = (504, "exhausted", 300);
    check(limited(Some(100), None), &late, &[0, 100, 200], thrice);
    check(limited(Some(100), Some(100)), &late, &[0], (504, "no-time", 100));
    check(limited(Some(100), Some(350)), &late, &[0, 100, 200], thrice);
    // An attempt that may take longer than the call is a mistake, and said so at once.
    let longer = limited(Some(350), Some(100));
    let error = Onus::builder("checkout").retry("payments", longer).build().unwrap_err();
    assert!(std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("350ms")));
}

#[test]
fn a_retry_that_has_waited_too_long_is_not_sent() {
    // [deadline-1] [criteria-4]
    let (seen, stop, attempts) = paused(async {
        let policy = attempts(2).deadline(ms(1000));
        let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
        let waits = Reply::says("claimed").header("grpc-retry-pushback-ms", "100");
        let callee = Callee::new([waits.after(ms(800)), Reply::ok()]);
        let call = tokio::spawn(onus.outbound("payments").layer(callee.clone()).oneshot(get("/")));
        tokio::time::sleep(ms(810)).await;
        // The process had no time to look at its timers.
        tokio::time::advance(ms(500)).await;
        let response = call.await.unwrap().unwrap();
        assert_eq!(response.status(), 504);
        let outcome = outcome(&response).unwrap();
        (callee.seen().len(), outcome.stop.as_str(), outcome.attempts)
    });
    assert_eq!((seen, stop, attempts), (1, "no-time", 1));
}

#[test]
fn limits_end_at_the_response_head() {
    let policy = attempts(2).per_try_timeout(ms(100)).deadline(ms(150));
    let body = [Piece::Wait(ms(5000)), Piece::data("late")];
    let (data, at) = paused(async {
        let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
        let client = onus.outbound("payments").layer(Callee::new([Reply::ok().body(body)]));
        let start = Instant::now();
        let response = client.oneshot(get("/")).await.unwrap();
        (read(response.into_body()).await.unwrap(), start.elapsed())
    });
    assert_eq!((&*data, at), (&b"late"[..], ms(5000)));
}

#[test]
fn the_layers_own_answer_is_in_the_callees_protocol() {
    let request = |content_type| {
        let mut request = get("/pkg.Service/Method");
        *request.method_mut() = http::Method::POST;
        let value = HeaderValue::from_static(content_type);
        request.headers_mut().insert(header::CONTENT_TYPE, value);
        request
    };
    let check = |content_type, status, grpc_status: Option<&str>| {
        let head = paused(async {
            let policy = attempts(1).deadline(ms(100));
            let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
            let client = onus.outbound("payments").layer(Callee::new([Reply::hangs()]));
            let response = client.oneshot(request(content_type)).await.unwrap();
            let (head, body) = response.into_parts();
            assert!(read(body).await.unwrap().is_empty());
            head
        });
        assert_eq!(head.status, status);
        assert_eq!(head.headers.get("grpc-status").map(|v| v.to_str().unwrap()), grpc_status);
        let expected = grpc_status.map(|_| "application/grpc");
        let content_type = head.headers.get(header::CONTENT_TYPE).map(|v| v.to_str().unwrap());
        assert_eq!(content_type, expected);
        let outcome = head.extensions.get::<CallOutcome>().unwrap();
        assert_eq!((outcome.read.as_str(), outcome.attempts), ("silent", 1));
    };
    check("application/json", 504, None);
    check("application/grpc", 200, Some("4"));
    check("application/grpc+proto", 200, Some("4"));
}

#[test]
fn waits_are_at_least_what_the_callee_asks() {
    // [decide-4] [decide-14] [decide-20]
    let asks = |text: &'static str| Reply::says("claimed").header("retry-after", text);
    let waits = |text, millis| {
        check(attempts(2), &[asks(text), Reply::ok()], &[0, millis], (200, "none", millis));
    };
    waits("1", 1000);
    waits("10", 10_000);
    waits("0", 0);
    for ignored in ["", "soon", "-1", "1.5", "Fri, 31 Dec 1999 23:59:59 GMT"] {
        waits(ignored, 0);
    }
    for too_long in ["11", "99999999999999999999", "Tue, 31 Dec 2999 23:59:59 GMT"] {
        check(attempts(2), &[asks(too_long)], &[0], (503, "pushback", 0));
    }
    let deadline = || attempts(2).deadline(ms(1000));
    check(deadline(), &[asks("2")], &[0], (503, "pushback", 0));
    check(deadline(), &[asks("1")], &[0], (503, "no-time", 0));
    let long = attempts(2).deadline(ms(60_000));
    check(long, &[asks("30"), Reply::ok()], &[0, 30_000], (200, "none", 30_000));

    let grpc = Reply::says("claimed").header("grpc-retry-pushback-ms", "300");
    check(attempts(2), &[grpc, Reply::ok()], &[0, 300], (200, "none", 300));
    // A lower bound: the backoff may be longer.
    let slow = || attempts(2).backoff(ms(60_000), ms(60_000));
    for _ in 0..20 {
        let ended = paused(call(slow(), vec![asks("1"), Reply::ok()], get("/")));
        assert!((1000..=60_001).contains(&ended.at), "{}", ended.at);
    }
}

#[test]
fn a_date_is_measured_on_the_wall_clock() {
    // [decide-14]
    #[expect(clippy::disallowed_methods, reason = "a date is what the callee sends here")]
    let at = SystemTime::now() + Duration::from_secs(5);
    let asks = Reply::says("claimed").header("retry-after", date(at));
    let ended = paused(call(attempts(2), vec![asks, Reply::ok()], get("/")));
    assert!((3000..=5001).contains(&ended.at), "{}", ended.at);
    assert_eq!(ended.attempts, [0, ended.at]);
}

fn date(at: SystemTime) -> &'static str {
    httpdate::fmt_http_date(at).leak()
}

#[test]
fn backoff_doubles_and_is_drawn_from_the_whole_range() {
    // [decide-13]
    let policy = || RetryPolicy::attempts(4).no_budget().no_probes();
    let mut waits = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..200 {
        let ended = paused(call(policy(), vec![Reply::says("claimed")], get("/")));
        for (n, pair) in ended.attempts.windows(2).enumerate() {
            waits[n].push(pair[1] - pair[0]);
        }
    }
    for (waits, cap) in waits.iter().zip([25, 50, 100]) {
        assert_eq!(waits.len(), 200);
        // The timer rounds up to a millisecond.
        assert!(waits.iter().all(|&wait| wait <= cap + 1), "{waits:?}");
        assert!(waits.iter().any(|&wait| wait < cap / 4), "{waits:?}");
        assert!(waits.iter().any(|&wait| wait > cap * 3 / 4), "{waits:?}");
    }
}

#[test]
fn the_budget_follows_the_calls_of_the_edge() {
    // [budget-2] [budget-4]
    let sends = |calls: usize, pause: Duration| {
        paused(async {
            let policy = RetryPolicy::articles(2).backoff(ms(0), ms(0)).no_probes();
            let onus = Onus::builder("checkout").retry("payments", policy).build().unwrap();
            let callee = Callee::new([Reply::says("claimed")]);
            for _ in 0..calls {
                let client = onus.outbound("payments").layer(callee.clone());
                client.oneshot(get("/")).await.unwrap();
                tokio::time::sleep(pause).await;
            }
            callee.seen().len()
        })
    };
    // One token of the floor, and a tenth for each call.
    assert_eq!(sends(100, ms(0)), 111);
    // No success, so the floor gives one token in ten seconds: a call a second deposits the other.
    assert_eq!(sends(101, ms(1000)), 101 + 1 + 20);
}
