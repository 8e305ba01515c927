//! The scripted callee that users test their services with: in memory, and on loopback.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use onus::test::{Answer, Callee, NoAnswer, claim, origin};
use onus::{CallError, CallOutcome, Onus, RetryPolicy, Stop};
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Endpoint;
use tower::ServiceExt;

use super::tonic::wire::Client;
use crate::cast::paused;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes().unsafe_methods().backoff(ms(0), ms(0))
}

fn ask() -> Request<Full<Bytes>> {
    Request::post("/charge").body(Full::from("17 EUR")).unwrap()
}

/// A call by `policy`: how it ends, why there was no further attempt, and the callee.
fn call(policy: RetryPolicy, script: &[Answer]) -> (Result<u16, CallError>, String, Callee) {
    paused(async {
        let onus = Onus::builder("checkout").enforce().retry("payments", policy).build().unwrap();
        let callee = Callee::new(script.to_vec());
        let answer = onus.outbound("payments").test(callee.clone()).oneshot(ask()).await;
        let outcome = answer.as_ref().ok().and_then(|answer| answer.extensions().get());
        let stop = outcome.map_or("none", |outcome: &CallOutcome| outcome.stop.as_str());
        let end = answer.map(|answer| answer.status().as_u16()).map_err(|NoAnswer(kind)| kind);
        (end, stop.to_owned(), callee)
    })
}

#[test]
fn callers_obey_the_script() {
    let failed = || Answer::status(503);
    let check = |script: &[Answer], attempts: usize, end: Result<u16, CallError>, stop: &str| {
        let (found, why, callee) = call(two(), script);
        assert_eq!((callee.attempts(), found, &*why), (attempts, end, stop), "{script:?}");
    };
    check(&[], 1, Ok(200), "none");
    check(&[Answer::ok()], 1, Ok(200), "none");
    check(&[failed().claimed(), Answer::ok()], 2, Ok(200), "none");
    check(&[failed().claimed()], 2, Ok(503), "exhausted");
    check(&[failed().unclaimed(), Answer::ok()], 1, Ok(503), "suppressed");
    check(&[failed().header("onus-claim", "unclaimed")], 1, Ok(503), "suppressed");
    check(&[Answer::grpc(14).claimed(), Answer::grpc(0)], 2, Ok(200), "none");
    check(&[Answer::grpc(14).unclaimed()], 1, Ok(200), "suppressed");
    check(&[Answer::error(CallError::Http(500)), Answer::ok()], 2, Ok(200), "none");
    check(&[Answer::error(CallError::Grpc(14)), Answer::grpc(0)], 2, Ok(200), "none");
    for kind in CallError::TRANSPORT {
        check(&[Answer::error(kind)], 2, Err(kind), "none");
        let policy = two().errors([kind].into_iter().collect());
        let (end, _, callee) = call(policy, &[Answer::error(kind), Answer::ok()]);
        assert_eq!((callee.attempts(), end), (2, Ok(200)), "a policy knows it as {kind:?}");
    }
    let (end, stop, callee) = call(two().per_try_timeout(ms(50)), &[Answer::silent()]);
    assert_eq!((callee.attempts(), end, &*stop), (2, Ok(504), "exhausted"));
}

#[test]
fn attempts_are_noted() {
    let (_, _, callee) = call(two(), &[Answer::error(CallError::Reset)]);
    let seen: Vec<_> = callee
        .received()
        .into_iter()
        .map(|received| {
            let (head, body) = received.request.into_parts();
            (received.attempt, received.marked, head.uri.path().to_owned(), body)
        })
        .collect();
    let attempt = |number, marked| (number, marked, "/charge".to_owned(), "17 EUR".into());
    assert_eq!(seen, [attempt(1, false), attempt(2, true)]);
}

#[test]
fn answers_come_as_late_as_the_script_says() {
    let waited = paused(async {
        let start = Instant::now();
        let callee = Callee::new([Answer::ok().after(ms(300)).body("late")]);
        let answer = callee.oneshot(ask()).await.unwrap();
        assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "late");
        start.elapsed()
    });
    assert_eq!(waited, ms(300));
}

#[test]
fn claims_are_told() {
    let check = |answer: Answer, said: &str, from: Option<(&str, u8)>| {
        let answer = paused(Callee::new([answer]).oneshot(ask())).unwrap();
        let origin = origin(answer.headers());
        let origin = origin.as_ref().map(|origin| (&*origin.service, origin.hops));
        assert_eq!((&*claim(answer.headers()), origin), (said, from));
    };
    let failed = || Answer::status(503);
    check(failed(), "missing", None);
    check(failed().header("onus-claim", "what"), "missing", None);
    check(failed().claimed(), "claimed own", None);
    check(failed().unclaimed(), "unclaimed exhausted", None);
    check(failed().unclaimed().reason(Stop::Marked), "unclaimed marked", None);
    check(failed().unclaimed().origin("ledger", 2), "unclaimed exhausted", Some(("ledger", 2)));
    check(failed().header("onus-claim", "claimed;kind=silent"), "claimed-silent", None);
    check(Answer::grpc(14).claimed(), "claimed own", None);
}

#[tokio::test]
async fn every_client_can_call_it_on_loopback() {
    let callee = Callee::new([Answer::status(503).claimed(), Answer::ok().body("paid")]);
    let url = callee.listen().await.unwrap();
    let onus = Onus::builder("checkout").enforce().retry("payments", two()).build().unwrap();
    let client = onus.outbound("payments").reqwest(reqwest::Client::new());
    let answer = client.post(format!("{url}/charge")).body("17 EUR").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.text().await.unwrap(), "paid");
    let numbers: Vec<_> = callee.received().iter().map(|received| received.attempt).collect();
    assert_eq!(numbers, [1, 2]);

    let said = || Answer::grpc(14).message("part").unclaimed();
    let callee = Callee::new([Answer::grpc(14).claimed(), Answer::grpc(0).message("paid"), said()]);
    let channel = Endpoint::from_shared(callee.listen().await.unwrap()).unwrap().connect_lazy();
    let mut client = Client::over(onus.outbound("payments").tonic(channel.clone()));
    assert_eq!(client.unary("17 EUR".to_owned()).await.unwrap().into_inner(), "paid");
    assert_eq!(callee.attempts(), 2);
    let status = Client::without(channel).unary("17 EUR".to_owned()).await.unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
    assert_eq!(claim(&status.metadata().clone().into_headers()), "unclaimed exhausted");

    let breaks = Callee::new([Answer::error(CallError::Reset)]).listen().await.unwrap();
    assert!(reqwest::get(breaks).await.unwrap_err().is_request());
}
