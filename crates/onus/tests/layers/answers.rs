//! What a service answers: claims, vetoes, and how the request ends.

use std::time::Duration;

use http::{HeaderValue, Method, Request, Response};
use onus::{Onus, OnusBuilder, RetryPolicy, Source, Switches};
use tower::{Layer, ServiceExt};

use crate::cast::{
    Broken, Callee, Piece, Pieces, Reply, ask, counted, get, paused, read, relay, said, serve,
};

/// A service that makes no calls, whose handler answers with this.
fn answers(onus: &Onus, make: fn() -> Response<Pieces>) -> crate::cast::Node {
    serve(onus, move |_| async move { make() })
}

fn answer(status: u16) -> http::response::Builder {
    Response::builder().status(status)
}

#[test]
fn errors_carry_one_claim_and_nothing_else_does() {
    // [claim-4] [claim-9] [wire-1] [wire-8]
    let check = |make: fn() -> Response<Pieces>, expected| {
        let (claim, plain) = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let response = ask(&mut answers(&onus, make), get("/")).await;
            (said(response.headers()), response.headers().get("x-own").is_some())
        });
        assert_eq!(claim, expected, "{:?}", make());
        assert!(plain, "headers of the application stay");
    };
    const COPIED: &str = "unclaimed;reason=exhausted";
    macro_rules! made {
        ($status:expr $(, $claim:expr)*) => {
            || {
                let builder = answer($status).header("x-own", "1");
                $(let builder = builder.header("onus-claim", $claim);)*
                builder.body(Pieces::empty()).unwrap()
            }
        };
    }
    check(made!(200), "nothing");
    check(made!(404), "nothing");
    check(made!(500), "claimed own");
    check(made!(429), "claimed own");
    check(made!(503, COPIED), "claimed own");
    check(made!(503, COPIED, "claimed"), "claimed own");
    check(made!(200, COPIED), "nothing");
    check(made!(404, COPIED, COPIED), "nothing");
}

/// A service whose handler passes on what `payments` answered, and its whole answer.
async fn passed_on(
    configure: impl FnOnce(OnusBuilder) -> OnusBuilder,
    reply: Reply,
    request: Request<Pieces>,
) -> crate::cast::Served {
    let policy = RetryPolicy::attempts(2).no_budget().no_probes();
    let builder = Onus::builder("shop/checkout").retry("shop/payments", policy);
    let onus = configure(builder).build().unwrap();
    let client = onus.outbound("shop/payments").layer(Callee::new([reply]));
    let mut node = serve(&onus, move |request| relay(client.clone(), request));
    ask(&mut node, request).await
}

#[test]
fn claims_tell_who_failed_first_and_how_far_below() {
    // [wire-3] [wire-4] [attempt-2] [claim-10]
    let check = |reply, header: Option<(&'static str, &'static str)>, expected: &str| {
        let mut request = get("/pay");
        if let Some((name, value)) = header {
            request.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        let response = paused(passed_on(OnusBuilder::enforce, reply, request));
        assert_eq!(response.headers()["onus-claim"], expected);
    };
    let exhausted = "unclaimed;reason=exhausted;attempt=";
    let claimed = || Reply::says("claimed");
    check(claimed(), None, &format!("{exhausted}1;origin=\"shop/payments\";hops=1"));
    let named = Reply::says("claimed;origin=\"shop/db\";hops=2");
    check(named, None, &format!("{exhausted}1;origin=\"shop/db\";hops=3"));
    let second = Some(("onus-attempt", "2"));
    check(claimed(), second, &format!("{exhausted}2;origin=\"shop/payments\";hops=1"));
    let envoy = Some(("x-envoy-attempt-count", "3"));
    check(claimed(), envoy, &format!("{exhausted}3;origin=\"shop/payments\";hops=1"));
    let below = Reply::says("unclaimed;origin=\"shop/db\";hops=1");
    let suppressed = "unclaimed;reason=suppressed;attempt=1;origin=\"shop/db\";hops=2";
    check(below, None, suppressed);

    let own = paused(async {
        let onus = Onus::builder("shop/checkout").build().unwrap();
        let make = || answer(500).body(Pieces::empty()).unwrap();
        ask(&mut answers(&onus, make), get("/")).await
    });
    let expected = "claimed;reason=own;attempt=1;origin=\"shop/checkout\";hops=0";
    assert_eq!(own.headers()["onus-claim"], expected);
}

#[test]
fn vetoes_go_with_unclaimed_errors_of_a_service_that_enforces() {
    // [wire-11] [wire-12]
    let check = |configure: fn(OnusBuilder) -> OnusBuilder, reply, expected| {
        let response = paused(passed_on(configure, reply, get("/pay")));
        let veto = response.headers().get("x-envoy-ratelimited").map(|v| v.to_str().unwrap());
        assert_eq!(veto, expected);
        assert!(!response.headers().contains_key("grpc-retry-pushback-ms"));
    };
    let observe = |b: OnusBuilder| b;
    let unclaimed = || Reply::says("unclaimed").header("x-envoy-ratelimited", "true");
    check(OnusBuilder::enforce, unclaimed(), Some("true"));
    check(|b| b.enforce_percent(0), unclaimed(), None);
    check(observe, unclaimed(), None);
    check(OnusBuilder::enforce, Reply::ok(), None);
    let optional = |b: OnusBuilder| b.enforce().optional("shop/payments");
    check(optional, Reply::says("claimed"), None);
}

#[test]
fn a_shield_answers_for_its_time() {
    // [shield-1] [shield-2]
    let check = |configure: fn(OnusBuilder) -> OnusBuilder, later| {
        let (now, then) = paused(async {
            let onus = configure(Onus::builder("checkout")).build().unwrap();
            let mut node = answers(&onus, || answer(503).body(Pieces::empty()).unwrap());
            let shield = Some(Duration::from_secs(60));
            onus.switch(Source::Admin, &Switches { shield, ..Switches::default() });
            let now = ask(&mut node, get("/")).await;
            assert_eq!(now.headers()["x-envoy-ratelimited"], "true");
            tokio::time::advance(Duration::from_secs(61)).await;
            let then = ask(&mut node, get("/")).await;
            assert!(!then.headers().contains_key("x-envoy-ratelimited"));
            (said(now.headers()), said(then.headers()))
        });
        assert_eq!((&*now, &*then), ("unclaimed shield operator", later));
    };
    check(|b| b, "claimed own");
    check(OnusBuilder::enforce, "claimed own");
    check(|b| b.mode(onus::Mode::Off), "nothing");
}

/// How many requests ended ok, with an error, and cancelled.
fn ends(onus: &Onus) -> [u64; 3] {
    ["ok", "error", "cancelled"]
        .map(|outcome| counted(onus, "onus_requests_total", &[("outcome", outcome)]))
}

#[test]
fn a_request_ends_with_its_body() {
    // [term-3]
    let check = |pieces: fn() -> Pieces, status, method: Method, expected| {
        let ended = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let mut node =
                serve(&onus, move |_| async move { answer(status).body(pieces()).unwrap() });
            let mut request = get("/");
            *request.method_mut() = method.clone();
            let response = ask(&mut node, request).await;
            if method != Method::HEAD {
                let _ = read(response.into_body()).await;
            }
            ends(&onus)
        });
        assert_eq!(ended, expected, "{status} {method}");
    };
    let breaks = || Pieces::new([Piece::data("half"), Piece::Break]);
    let slow = || Pieces::new([Piece::data("half"), Piece::Wait(Duration::from_secs(9))]);
    check(Pieces::empty, 200, Method::GET, [1, 0, 0]);
    check(|| Pieces::sized("all"), 200, Method::GET, [1, 0, 0]);
    check(slow, 200, Method::GET, [1, 0, 0]);
    check(slow, 503, Method::GET, [0, 1, 0]);
    check(slow, 404, Method::GET, [1, 0, 0]);
    check(breaks, 200, Method::GET, [0, 1, 0]);
    // Nobody reads the body of an answer to HEAD, whatever it says of its length.
    check(|| Pieces::sized("all"), 200, Method::HEAD, [1, 0, 0]);
    check(slow, 503, Method::HEAD, [0, 1, 0]);
}

#[test]
fn readers_that_know_the_size_stop_at_the_last_byte() {
    let ended = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let mut node = answers(&onus, || answer(200).body(Pieces::sized("all")).unwrap());
        let mut body = Box::pin(ask(&mut node, get("/")).await.into_body());
        let frame = http_body_util::BodyExt::frame(&mut body).await;
        assert!(frame.unwrap().unwrap().is_data());
        let before_it_is_dropped = ends(&onus);
        drop(body);
        (before_it_is_dropped, ends(&onus))
    });
    assert_eq!(ended, ([1, 0, 0], [1, 0, 0]));
}

#[test]
fn a_caller_that_has_gone_teaches_nothing() {
    // [drop-4] [class-2]
    let (ended, taught) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let client = onus.outbound("payments").layer(Callee::new([Reply::says("claimed")]));
        let mut node = serve(&onus, move |request| {
            let client = client.clone();
            async move {
                relay(client, request).await;
                std::future::pending().await
            }
        });
        // While the handler runs.
        let limit = Duration::from_secs(1);
        assert!(tokio::time::timeout(limit, ask(&mut node, get("/"))).await.is_err());
        // While the body is on its way.
        let mut node = answers(&onus, || {
            answer(200).body(Pieces::new([Piece::data("half"), Piece::Hang])).unwrap()
        });
        let mut body = Box::pin(ask(&mut node, get("/")).await.into_body());
        assert!(http_body_util::BodyExt::frame(&mut body).await.is_some());
        drop(body);
        let taught = counted(&onus, "onus_edge_requests_total", &[])
            + counted(&onus, "onus_clean_requests_total", &[]);
        (ends(&onus), taught)
    });
    assert_eq!((ended, taught), ([0, 0, 2], 0));
}

#[test]
fn a_caller_that_leaves_behind_the_head_of_an_error_has_read_it() {
    // [term-3] Many clients hang up once they have read a status, and leave the body.
    let check = |status, expected| {
        let ended = paused(async {
            let onus = Onus::builder("checkout").build().unwrap();
            let pieces = || Pieces::new([Piece::data("half"), Piece::Hang]);
            let mut node =
                serve(&onus, move |_| async move { answer(status).body(pieces()).unwrap() });
            drop(ask(&mut node, get("/")).await.into_body());
            (ends(&onus), counted(&onus, "onus_clean_requests_total", &[]))
        });
        assert_eq!(ended, expected, "{status}");
    };
    check(503, ([0, 1, 0], 1));
    // What is fine so far may still break.
    check(200, ([0, 0, 1], 0));
    check(404, ([0, 0, 1], 0));
}

#[test]
fn a_body_that_breaks_makes_the_call_a_failure() {
    // [term-3] [decide-7]
    let check = |pieces: Vec<Piece>, policy: Option<RetryPolicy>, expected: (&str, [u64; 3])| {
        let (claim, calls) = paused(async {
            let mut builder = Onus::builder("checkout").enforce();
            if let Some(policy) = policy {
                builder = builder.retry("payments", policy);
            }
            let onus = builder.build().unwrap();
            let reply = Reply::ok().body(pieces);
            let client = onus.outbound("payments").layer(Callee::new([reply]));
            let mut node = serve(&onus, move |_| {
                let client = client.clone();
                async move {
                    let response = client.oneshot(get("/")).await.unwrap();
                    let status = match read(response.into_body()).await {
                        Ok(_) => 200,
                        Err(Broken(_)) => 502,
                    };
                    answer(status).body(Pieces::empty()).unwrap()
                }
            });
            let response = ask(&mut node, get("/")).await;
            let calls = ["ok", "error", "abandoned"]
                .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]));
            (said(response.headers()), calls)
        });
        assert_eq!((&*claim, calls), expected);
    };
    let two = || Some(RetryPolicy::attempts(2).no_budget());
    let half = Piece::data("half");
    check(vec![half.clone()], None, ("nothing", [1, 0, 0]));
    let breaks = vec![half, Piece::Break];
    check(breaks.clone(), None, ("claimed silent handoff", [0, 1, 0]));
    // Part of the answer has been passed on, so nothing can be sent again.
    check(breaks, two(), ("claimed silent handoff", [0, 1, 0]));
}

#[test]
fn an_answer_may_be_left_unread() {
    let calls = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let reply = Reply::ok().body([Piece::data("half"), Piece::Hang]);
        let client = onus.outbound("payments").layer(Callee::new([reply]));
        drop(client.oneshot(get("/")).await.unwrap());
        ["ok", "error", "abandoned"]
            .map(|outcome| counted(&onus, "onus_calls_total", &[("outcome", outcome)]))
    });
    assert_eq!(calls, [1, 0, 0]);
}
