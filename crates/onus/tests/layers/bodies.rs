//! Request bodies that are sent again, and those that cannot be.

use std::time::Duration;

use bytes::Bytes;
use http::Request;
use onus::replay::ReplayLimits;
use onus::{Onus, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{
    Callee, Piece, Pieces, Reply, Seen, ask, counted, get, outcome, paused, post, relay, serve,
};

const LIMIT: usize = ReplayLimits::PER_REQUEST_DEFAULT;

/// Sends a body to a callee that fails at first. Each attempt brings what is said, and a body that
/// cannot be sent again is counted.
#[track_caller]
fn check(make: fn() -> Pieces, fails: Reply, brought: &[Brought], stop: Option<&str>) {
    let (seen, failed, stopped, in_use, whole) = paused(async {
        let policy = RetryPolicy::attempts(2).no_budget().unsafe_methods();
        let onus = Onus::builder("checkout").enforce().retry("payments", policy).build().unwrap();
        let callee = Callee::new([fails, Reply::ok()]);
        let client = onus.outbound("payments").layer(callee.clone());
        let answer = client.oneshot(post("/charge", make())).await;
        let failed = answer.is_err() || outcome(&answer.unwrap()).is_some();
        let labels = |reason| [("callee", "payments"), ("reason", reason)];
        let counted = |reason| counted(&onus, "onus_retries_not_made_total", &labels(reason));
        let stopped = stop.is_some_and(|stop| counted(stop) == 1);
        (callee.seen(), failed, stopped, onus.replay_limits().in_use(), whole(make()).await)
    });
    let brings = |seen: &Seen| match &seen.body_error {
        Some(_) => Brought::Error,
        None if seen.body == whole => Brought::All,
        None => Brought::Bytes(seen.body.len()),
    };
    assert_eq!(seen.iter().map(brings).collect::<Vec<_>>(), brought);
    assert_eq!(failed, stop.is_some());
    assert_eq!(stopped, stop.is_some(), "the reason is counted");
    assert_eq!(in_use, 0, "the memory of the body is given back");
}

#[derive(Debug, PartialEq)]
enum Brought {
    All,
    Bytes(usize),
    Error,
}

/// The data of a body up to where it breaks.
async fn whole(body: Pieces) -> Bytes {
    use http_body_util::BodyExt;
    let mut body = std::pin::pin!(body);
    let mut all = Vec::new();
    while let Some(Ok(frame)) = body.as_mut().frame().await {
        all.extend_from_slice(frame.data_ref().unwrap_or(&Bytes::new()));
    }
    all.into()
}

#[test]
fn bodies_within_the_limit_are_sent_again() {
    use Brought::All;
    let fails = || Reply::says("claimed");
    check(Pieces::empty, fails(), &[All, All], None);
    check(|| Pieces::sized("17 EUR"), fails(), &[All, All], None);
    check(|| Pieces::sized(vec![b'x'; LIMIT]), fails(), &[All, All], None);
    check(|| Pieces::chunked(1, 1), fails(), &[All, All], None);
    check(|| Pieces::chunked(64, LIMIT / 64), fails(), &[All, All], None);
    check(|| Pieces::chunked(1000, 3), fails(), &[All, All], None);
    let slow = || {
        Pieces::new([Piece::data("17"), Piece::Wait(Duration::from_secs(1)), Piece::data(" EUR")])
    };
    check(slow, fails(), &[All, All], None);
    let trailers =
        || Pieces::new([Piece::data("17 EUR"), Piece::Trailers(vec![("checksum", "1")])]);
    check(trailers, fails(), &[All, All], None);
    check(trailers, Reply::breaks(), &[All, All], None);
}

#[test]
fn bodies_over_the_limit_are_sent_once_and_whole() {
    // [decide-7]
    let stop = Some("not-replayable");
    let fails = || Reply::says("claimed");
    check(|| Pieces::sized(vec![b'x'; LIMIT + 1]), fails(), &[Brought::All], stop);
    check(|| Pieces::chunked(65, LIMIT / 64), fails(), &[Brought::All], stop);
    check(|| Pieces::chunked(3, LIMIT / 2), fails(), &[Brought::All], stop);
    let ok = Reply::ok();
    check(|| Pieces::chunked(65, LIMIT / 64), ok, &[Brought::All], None);
    // A body that says so itself is not kept at all, so it is gone with its first frame; one that
    // says nothing is kept up to the limit.
    let sized = || Pieces::of_size(vec![Piece::data(vec![b'x'; LIMIT / 64]); 65]);
    check(sized, fails().early(), &[Brought::Bytes(LIMIT / 64)], stop);
    let both = [Brought::Bytes(LIMIT / 64), Brought::All];
    check(|| Pieces::chunked(65, LIMIT / 64), fails().early(), &both, None);
}

#[test]
fn an_early_answer_gives_the_rest_of_the_upload_to_the_next_attempt() {
    let first = Brought::Bytes(1000);
    let upload = || Pieces::chunked(20, 1000);
    check(upload, Reply::says("claimed").early(), &[first, Brought::All], None);
    let slow = || {
        let pause = Duration::from_secs(1);
        let piece = |n: u8| [Piece::data(vec![n; 1000]), Piece::Wait(pause)];
        Pieces::new((0..20).flat_map(piece))
    };
    check(slow, Reply::says("claimed").early(), &[Brought::Bytes(1000), Brought::All], None);
}

#[test]
fn bodies_nobody_has_read_can_be_sent_whatever_their_size() {
    let refused = || Reply::says("claimed").unread();
    let unread = || Brought::Bytes(0);
    check(|| Pieces::sized(vec![b'x'; LIMIT + 1]), refused(), &[unread(), Brought::All], None);
    check(|| Pieces::chunked(65, LIMIT / 64), refused(), &[unread(), Brought::All], None);
}

#[test]
fn bodies_that_break_are_not_sent_again() {
    // [decide-7]
    let breaks = || Pieces::new([Piece::data("17"), Piece::Break]);
    check(breaks, Reply::breaks(), &[Brought::Error], Some("not-replayable"));
}

#[test]
fn a_body_that_breaks_says_nothing_of_the_callee() {
    // [drop-6] [class-2] S56
    let check = |policy: Option<RetryPolicy>, body: fn() -> Pieces, reply: Reply, outcome: &str| {
        paused(async {
            let builder = Onus::builder("checkout").enforce();
            let builder = policy.into_iter().fold(builder, |b, policy| b.retry("payments", policy));
            let onus = builder.build().unwrap();
            let callee = Callee::new([reply]);
            let client = onus.outbound("payments").layer(callee);
            let mut node = serve(&onus, move |_| {
                relay(client.clone(), Request::post("/charge").body(body()).unwrap())
            });
            let answer = ask(&mut node, get("/")).await;
            assert!(answer.status().is_server_error());
            drop(answer);
            let calls = |outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]);
            assert_eq!((calls(outcome), calls("error") + calls("abandoned")), (1, 1));
            let taught = counted(&onus, "onus_edge_requests_total", &[]);
            assert_eq!(taught, u64::from(outcome == "error"), "{outcome}");
        });
    };
    let broken = || Pieces::new([Piece::data("17"), Piece::Break]);
    let large = || Pieces::new([Piece::data(vec![b'x'; LIMIT + 1]), Piece::Break]);
    let whole = || Pieces::sized("17");
    let twice = || Some(RetryPolicy::attempts(2).no_budget().unsafe_methods());
    for policy in [|| None, twice] {
        check(policy(), broken, Reply::breaks(), "abandoned");
        check(policy(), large, Reply::breaks(), "abandoned");
        check(policy(), whole, Reply::breaks(), "error");
        // What the callee has answered is its own.
        check(policy(), broken, Reply::says("claimed"), "error");
    }
}

#[test]
fn limits_are_configurable() {
    let check = |per_request, total, sends| {
        let sent = paused(async {
            let policy = RetryPolicy::attempts(2).no_budget().unsafe_methods();
            let builder = Onus::builder("checkout").retry("payments", policy);
            let onus = builder.replay_limits(per_request, total).build().unwrap();
            let callee = Callee::new([Reply::says("claimed"), Reply::ok()]);
            let client = onus.outbound("payments").layer(callee.clone());
            let request = Request::post("/charge").body(Pieces::chunked(10, 10)).unwrap();
            client.oneshot(request).await.unwrap();
            callee.seen().len()
        });
        assert_eq!(sent, sends, "{per_request} {total}");
    };
    check(100, 1000, 2);
    check(99, 1000, 1);
    check(1000, 99, 1);
    check(0, 0, 1);
}
