//! The application's own loop: the same call again is a further attempt of the same logical call.

use std::time::Duration;

use http::{HeaderValue, Method, Request, Response};
use http_body_util::BodyExt;
use onus::{Onus, OnusBuilder, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Client, Piece, Pieces, Reply, ask, counted, get, paused, said, serve};

/// The calls that a handler makes one after the other until one ends ok.
type Calls = fn() -> Vec<Request<Pieces>>;

/// `attempts`: number and mark of each attempt as the callee saw it. `answer`: the claim of the
/// handler's answer, which is an error if the last call was, and the repeats that were counted.
#[track_caller]
fn check(
    configure: fn(OnusBuilder) -> OnusBuilder,
    calls: Calls,
    script: &[Reply],
    attempts: &[&str],
    answer: (&str, u64),
) {
    let (seen, said, repeats) = paused(async {
        let onus = configure(Onus::builder("checkout").enforce()).build().unwrap();
        let callee = Callee::new(script.to_vec());
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |_| in_a_row(client.clone(), calls()));
        let response = ask(&mut node, get("/pay")).await;
        let (head, body) = response.into_parts();
        drop(body);
        let labels = [("callee", "payments")];
        let repeats = counted(&onus, "onus_repeats_total", &labels);
        (callee.attempts(), said(&head.headers), repeats)
    });
    assert_eq!(seen, attempts);
    assert_eq!((&*said, repeats), answer);
}

async fn in_a_row(client: Client, calls: Vec<Request<Pieces>>) -> Response<Pieces> {
    let mut status = 502;
    for call in calls {
        let answer = client.clone().oneshot(call).await;
        status = answer.map_or(502, |response| response.status().as_u16());
        if status == 200 {
            break;
        }
    }
    Response::builder().status(status).body(Pieces::empty()).unwrap()
}

fn alone(builder: OnusBuilder) -> OnusBuilder {
    builder
}

fn two(builder: OnusBuilder) -> OnusBuilder {
    let policy = RetryPolicy::attempts(2).no_budget().unsafe_methods();
    builder.retry("payments", policy.backoff(Duration::ZERO, Duration::ZERO))
}

fn request(method: Method, path: &str, body: Pieces) -> Request<Pieces> {
    Request::builder().method(method).uri(path).body(body).unwrap()
}

fn charge(body: &'static str) -> Request<Pieces> {
    request(Method::POST, "/charge", Pieces::sized(body))
}

const CLAIMED: &str = "claimed";

#[test]
fn a_repeat_is_an_attempt_of_the_same_call() {
    // [attempt-5] [attempt-7] [attempt-1] [mark-5] [criteria-1]
    let thrice: Calls = || vec![get("/rate"), get("/rate"), get("/rate")];
    let (claimed, lost, ok) = (|| Reply::says(CLAIMED), Reply::breaks, Reply::ok);
    let stop = "unclaimed not-configured";
    check(alone, thrice, &[claimed()], &["-", "2", "3"], (stop, 2));
    check(alone, thrice, &[lost()], &["-", "2 marked", "3 marked"], (stop, 2));
    let missing = Reply::status(503);
    let mixed = [missing, claimed()];
    check(alone, thrice, &mixed, &["-", "2 marked", "3"], (stop, 2));
    check(alone, thrice, &[claimed(), ok()], &["-", "2"], ("nothing", 1));
    check(alone, thrice, &[ok()], &["-"], ("nothing", 0));
    // The attempts of both runs count, so the second has none left to add.
    let exhausted = ("unclaimed exhausted", 2);
    check(two, thrice, &[claimed()], &["-", "2", "3", "4"], exhausted);
    let third_ok = [claimed(), lost(), ok()];
    check(two, thrice, &third_ok, &["-", "2", "3 marked"], ("nothing", 1));
}

#[test]
fn repeats_are_recognised_by_their_bodies() {
    // [attempt-5] [attempt-7]
    let claimed = || [Reply::says(CLAIMED)];
    let sized: Calls = || vec![charge("17 EUR"), charge("17 EUR")];
    let late: Calls = || {
        let pause = Piece::Wait(Duration::from_secs(1));
        let late = || Pieces::of_size([Piece::data("17"), pause.clone(), Piece::data(" EUR")]);
        vec![charge("17 EUR"), request(Method::POST, "/charge", late())]
    };
    for calls in [sized, late] {
        check(alone, calls, &claimed(), &["-", "2"], ("unclaimed not-configured", 1));
        check(two, calls, &claimed(), &["-", "2", "3"], ("unclaimed exhausted", 1));
    }
}

#[test]
fn bodies_that_nobody_holds_make_no_repeats() {
    // [attempt-10]
    let claimed = || [Reply::says(CLAIMED)];
    let handed = ("claimed handoff", 0);
    let streamed: Calls = || {
        let charge = || request(Method::POST, "/charge", Pieces::chunked(3, 10));
        vec![charge(), charge()]
    };
    check(alone, streamed, &claimed(), &["-", "-"], handed);
    let large: Calls = || {
        let body = || Pieces::sized(vec![b'x'; 64 * 1024 + 1]);
        vec![request(Method::POST, "/charge", body()), request(Method::POST, "/charge", body())]
    };
    check(alone, large, &claimed(), &["-", "-"], handed);
}

#[test]
fn a_body_that_is_looked_into_arrives_whole_or_broken() {
    let check = |pieces: Vec<Piece>, body: &str, broken: bool| {
        let seen = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let callee = Callee::new([Reply::says(CLAIMED)]);
            let client = onus.outbound("payments").layer(callee.clone());
            let mut node = serve(&onus, move |_| {
                let again = request(Method::POST, "/charge", Pieces::of_size(pieces.clone()));
                in_a_row(client.clone(), vec![charge("17 EUR"), again])
            });
            ask(&mut node, get("/pay")).await;
            let [_, again] = &callee.seen()[..] else { panic!("the call is made twice") };
            again.clone()
        });
        assert_eq!((&*seen.body, seen.body_error.is_some()), (body.as_bytes(), broken));
    };
    let data = |text: &'static str| Piece::data(text);
    check(vec![data("17 EUR")], "17 EUR", false);
    check(vec![data("18"), data(" EUR")], "18 EUR", false);
    check(vec![data("18"), Piece::Break, data(" EUR")], "", true);
}

#[test]
fn other_calls_are_no_repeats() {
    // [attempt-5]
    let claimed = [Reply::says(CLAIMED)];
    let first = &["-", "-"];
    let handed = ("claimed handoff", 0);
    check(alone, || vec![get("/rate"), get("/rates")], &claimed, first, handed);
    check(alone, || vec![get("/rate?of=EUR"), get("/rate?of=USD")], &claimed, first, handed);
    let methods: Calls = || vec![get("/rate"), request(Method::HEAD, "/rate", Pieces::empty())];
    check(alone, methods, &claimed, first, handed);
    check(alone, || vec![charge("17 EUR"), charge("18 EUR")], &claimed, first, handed);
    // The first one has ended ok.
    let then_fails = [Reply::ok(), Reply::says(CLAIMED)];
    let (seen, said) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let callee = Callee::new(then_fails);
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |_| {
            let (first, second) = (client.clone(), client.clone());
            async move {
                first.oneshot(get("/rate")).await.unwrap();
                in_a_row(second, vec![get("/rate")]).await
            }
        });
        let response = ask(&mut node, get("/pay")).await;
        (callee.attempts(), said(response.headers()))
    });
    assert_eq!((&*said, seen), ("claimed handoff", vec!["-".to_owned(); 2]));
}

#[test]
fn a_call_that_was_given_up_can_be_repeated_too() {
    // [attempt-6] [mark-5]
    let (seen, said) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let callee = Callee::new([Reply::hangs()]);
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |_| {
            let client = client.clone();
            async move {
                for _ in 0..2 {
                    let call = client.clone().oneshot(get("/rate"));
                    let _ = tokio::time::timeout(Duration::from_secs(1), call).await;
                }
                Response::builder().status(503).body(Pieces::empty()).unwrap()
            }
        });
        let response = ask(&mut node, get("/pay")).await;
        (callee.attempts(), said(response.headers()))
    });
    assert_eq!((&*said, seen), ("unclaimed in-flight", vec!["-".into(), "2 marked".into()]));
}

#[test]
fn a_call_that_fails_in_its_trailers_can_be_repeated_too() {
    // [attempt-5] [term-5]
    #[track_caller]
    fn check(configure: fn(OnusBuilder) -> OnusBuilder, first: &[Piece], claim: &str) {
        let last = Piece::Trailers(vec![("grpc-status", "14"), ("onus-claim", CLAIMED)]);
        let body: Vec<_> = first.iter().cloned().chain([last]).collect();
        let (seen, said) = paused(async {
            let onus = configure(Onus::builder("checkout").enforce()).build().unwrap();
            let callee = Callee::new([Reply::ok().header("content-type", GRPC).body(body)]);
            let client = onus.outbound("payments").layer(callee.clone());
            let mut node = serve(&onus, move |_| {
                let client = client.clone();
                async move {
                    for _ in 0..2 {
                        let mut call = charge("17 EUR");
                        call.headers_mut().insert("content-type", HeaderValue::from_static(GRPC));
                        let answer = client.clone().oneshot(call).await.unwrap();
                        answer.into_body().collect().await.unwrap();
                    }
                    Response::builder().status(503).body(Pieces::empty()).unwrap()
                }
            });
            let response = ask(&mut node, get("/pay")).await;
            (callee.attempts(), said(response.headers()))
        });
        assert_eq!((&*said, seen), (claim, vec!["-".to_owned(), "2".to_owned()]));
    }
    const GRPC: &str = "application/grpc";
    check(alone, &[], "unclaimed not-configured");
    // The first message has been passed on, so the policy has no retry to make.
    check(two, &[Piece::data("part")], "unclaimed not-replayable");
}

#[test]
fn a_retry_that_its_grpc_library_numbers_needs_no_body() {
    // [attempt-13] [attempt-7] [attempt-1]
    fn streamed(number: Option<&'static str>) -> Request<Pieces> {
        let mut call = request(Method::POST, "/bank.Ledger/Charge", Pieces::chunked(3, 10));
        let headers = call.headers_mut();
        headers.insert("content-type", HeaderValue::from_static("application/grpc"));
        if let Some(number) = number {
            headers.insert("grpc-previous-rpc-attempts", HeaderValue::from_static(number));
        }
        call
    }
    let claimed = || [Reply::says(CLAIMED)];
    let thrice: Calls = || vec![streamed(None), streamed(Some("1")), streamed(Some("2"))];
    let not_configured = ("unclaimed not-configured", 2);
    check(alone, thrice, &claimed(), &["-", "2", "3"], not_configured);
    check(two, thrice, &claimed(), &["-", "2", "3", "4"], ("unclaimed exhausted", 2));
    let lost = [Reply::breaks(), Reply::says(CLAIMED)];
    check(alone, thrice, &lost, &["-", "2 marked", "3"], not_configured);
    // Two calls, of which nobody says that one is the other's retry.
    let copied: Calls = || vec![streamed(Some("1")), streamed(Some("1"))];
    check(alone, copied, &claimed(), &["-", "-"], ("claimed handoff", 0));
}

#[test]
fn two_requests_that_make_the_same_call_do_not_repeat_each_other() {
    // [attempt-5]
    let seen = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let callee = Callee::new([Reply::says(CLAIMED)]);
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |_| in_a_row(client.clone(), vec![get("/rate")]));
        for _ in 0..2 {
            assert_eq!(said(ask(&mut node, get("/pay")).await.headers()), "claimed handoff");
        }
        callee.attempts()
    });
    assert_eq!(seen, ["-", "-"]);
}
