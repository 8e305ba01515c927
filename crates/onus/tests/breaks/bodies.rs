//! Request bodies that the layer reads before it sends them, to see whether the call is a repeat.

use std::time::Duration;

use http::{Request, Response};
use onus::{Onus, OnusBuilder, RetryPolicy};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Piece, Pieces, Reply, ask, counted, get, paused, post, serve};

const MS: Duration = Duration::from_millis(1);

/// A handler that charges, meets a failure, and charges again with `second` as the body. The
/// second answer's status, what it brought, and when it was there.
#[track_caller]
fn check(
    configure: fn(OnusBuilder) -> OnusBuilder,
    second: fn() -> Pieces,
    expected: (u16, Option<&str>, u128),
) {
    let (status, seen, at, in_use) = paused(async {
        let onus = configure(Onus::builder("checkout").enforce()).build().unwrap();
        let callee = Callee::new([Reply::says("claimed"), Reply::ok()]);
        let client = onus.outbound("payments").layer(callee.clone());
        let mut node = serve(&onus, move |_: Request<Pieces>| {
            let client = client.clone();
            async move {
                let first = client.clone().oneshot(post("/charge", Pieces::sized("17 EUR")));
                assert_eq!(first.await.unwrap().status(), 503);
                let second = client.oneshot(post("/charge", second())).await.unwrap();
                Response::builder().status(second.status()).body(Pieces::empty()).unwrap()
            }
        });
        let start = Instant::now();
        let status = ask(&mut node, get("/pay")).await.status().as_u16();
        assert_eq!(counted(&onus, "onus_untied_calls_total", &[]), 0);
        (status, callee.seen(), start.elapsed().as_millis(), onus.replay_limits().in_use())
    });
    let brought = seen.get(1).map(|seen| match &seen.body_error {
        None => std::str::from_utf8(&seen.body).unwrap(),
        Some(error) => error,
    });
    assert_eq!((status, brought, at), expected);
    assert_eq!(in_use, 0);
}

fn plain(builder: OnusBuilder) -> OnusBuilder {
    builder
}

#[test]
fn a_body_that_finds_no_room_is_sent_all_the_same() {
    let small = || Pieces::sized("17 EUR");
    check(plain, small, (200, Some("17 EUR"), 0));
    // The memory that all requests share is used up.
    check(|b| b.replay_limits(1024, 5), small, (200, Some("17 EUR"), 0));
    check(|b| b.replay_limits(1024, 0), small, (200, Some("17 EUR"), 0));
    let parts = || Pieces::of_size(["17", " ", "EUR"].map(Piece::data));
    check(|b| b.replay_limits(1024, 3), parts, (200, Some("17 EUR"), 0));
    // Trailers count as well, and nobody tells their size beforehand.
    let with_trailers =
        || Pieces::of_size([Piece::data("17 EUR"), Piece::Trailers(vec![("checksum", "1")])]);
    check(|b| b.replay_limits(10, 1024), with_trailers, (200, Some("17 EUR"), 0));
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    // It is no repeat then, and the limit of the call starts with its first attempt.
    let stalls = || Pieces::of_size([Piece::data("17"), Piece::Hang, Piece::data(" EUR")]);
    check(
        |b| b.retry("payments", RetryPolicy::attempts(1).deadline(100 * MS)),
        stalls,
        (504, Some(""), 200),
    );
}
