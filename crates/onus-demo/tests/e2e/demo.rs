//! The runs of `onus demo`, with every variant, counted in the services.

use std::time::Duration;

use onus_demo::{Cluster, Demo, DemoError, Load, Misuse, Node, PerNode, Policy, RetryPermission};

use super::http;

/// Counts for one request at A.
type Growth = [f64; 7];

/// Up to D in this way, and as at D below it.
const fn to_d(b: f64, c: f64, d: f64) -> Growth {
    [1.0, b, c, d, d, d, d]
}

const ONES: Growth = [1.0; 7];
const STORM: Growth = to_d(2.0, 4.0, 8.0);
const OWNED: Growth = to_d(1.0, 1.0, 2.0);

/// Runs `policy` and compares what the services say with what is printed as measured and as
/// expected, and all of them with `growth`.
async fn check(demo: Demo, policy: Policy, growth: Growth) {
    let what = format!("{policy:?} of {demo:?}");
    let counts = PerNode(growth.map(|each| (each * demo.requests as f64).round() as u64));
    let cluster = Cluster::start(&demo.topology(policy)).await.unwrap();
    let report = cluster.send(Load::new(demo.requests, 16)).await.unwrap();
    assert_eq!(http::counts(&cluster).await, counts.0, "{what}");
    assert_eq!(report.client_errors, demo.requests, "{what}");
    assert_eq!(demo.expected(policy), Some(counts), "{what}");
}

fn demo() -> Demo {
    Demo { requests: 20, ..Demo::default() }
}

#[tokio::test]
async fn d_fails() {
    check(demo(), Policy::None, ONES).await;
    check(demo(), Policy::Everywhere, STORM).await;
    check(demo(), Policy::Ownership, OWNED).await;
}

#[tokio::test]
async fn another_node_fails() {
    let demo = Demo { requests: 10, ..demo() };
    let at_g = Demo { fail: Node::G, ..demo };
    check(at_g, Policy::Everywhere, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]).await;
    check(at_g, Policy::Ownership, [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0]).await;
    check(Demo { fail: Node::A, ..demo }, Policy::Everywhere, ONES).await;
    check(Demo { fail: Node::B, ..demo }, Policy::Ownership, to_d(2.0, 2.0, 2.0)).await;
}

#[tokio::test]
async fn variants() {
    let c = Some(Node::C);
    let d = Some(Node::D);
    let context_loss = Demo { context_loss: c, ..demo() };
    let no_retries = Demo { no_retries: c, ..demo() };
    let no_claims = Demo { no_claims: d, ..demo() };
    let shield = Demo { shield: d, ..demo() };
    let observe = Demo { observe: true, ..demo() };
    for (variant, ownership) in [
        (context_loss, to_d(1.0, 2.0, 4.0)),
        (no_retries, to_d(1.0, 2.0, 2.0)),
        (no_claims, to_d(1.0, 1.0, 2.0)),
        (Demo { no_claims: c, ..demo() }, to_d(1.0, 2.0, 4.0)),
        (shield, ONES),
        (observe, STORM),
    ] {
        check(variant, Policy::Ownership, ownership).await;
    }
    check(no_retries, Policy::Everywhere, to_d(2.0, 4.0, 4.0)).await;
    for untouched in [context_loss, no_claims, shield, observe] {
        check(untouched, Policy::Everywhere, STORM).await;
    }
}

#[tokio::test]
async fn d_hangs_and_every_level_times_out_first() {
    const fn nothing_below(b: f64, c: f64, d: f64) -> Growth {
        [1.0, b, c, d, 0.0, 0.0, 0.0]
    }
    let hang_timeout = Duration::from_millis(250);
    let hang = Demo { requests: 10, hang: true, hang_timeout, ..Demo::default() };
    check(hang, Policy::None, nothing_below(1.0, 1.0, 1.0)).await;
    check(hang, Policy::Everywhere, nothing_below(2.0, 4.0, 8.0)).await;
    check(hang, Policy::Ownership, nothing_below(2.0, 3.0, 4.0)).await;
    let observe = Demo { observe: true, ..hang };
    check(observe, Policy::Ownership, nothing_below(2.0, 4.0, 8.0)).await;
}

#[tokio::test]
async fn a_hangs_and_the_client_times_out() {
    let hang_timeout = Duration::from_millis(250);
    let hang = Demo { requests: 10, hang: true, hang_timeout, fail: Node::A, ..Demo::default() };
    let run = hang.run(Policy::Everywhere).await.unwrap();
    assert_eq!(run.handled, PerNode([10, 0, 0, 0, 0, 0, 0]));
    assert_eq!(run.expected, Some(run.handled));
    let (seen, times) = run.report.most_seen().unwrap();
    assert_eq!((seen.to_string().as_str(), times), ("no answer", 10));
}

#[tokio::test]
async fn budgets_stay_within_two_percent() {
    async fn check(demo: Demo, policy: Policy, growth: Growth) {
        let run = demo.run(policy).await.unwrap();
        for ((node, &measured), growth) in run.handled.iter().zip(growth) {
            let expected = growth * demo.requests as f64;
            let off = (measured as f64 - expected).abs() / expected;
            assert!(off <= 0.02, "{policy:?}: {measured} at {node}, expected {expected}");
            assert_eq!(run.expected.unwrap()[node], expected.round() as u64, "{policy:?}");
        }
    }
    check(Demo::default(), Policy::Budget, to_d(1.1, 1.21, 1.331)).await;
    check(Demo::default(), Policy::OwnershipBudget, to_d(1.0, 1.0, 1.1)).await;
    let context_loss = Demo { context_loss: Some(Node::C), ..Demo::default() };
    check(context_loss, Policy::OwnershipBudget, to_d(1.0, 1.1, 1.21)).await;
}

#[tokio::test]
async fn the_client_reads_who_failed_first() {
    async fn check(demo: Demo, policy: Policy, text: &str, retry: RetryPermission) {
        let run = demo.run(policy).await.unwrap();
        let (seen, times) = run.report.most_seen().unwrap();
        assert_eq!((seen.to_string().as_str(), seen.retry()), (text, retry), "{policy:?}");
        assert_eq!(times, demo.requests);
    }
    use RetryPermission::{Closed, Open, Unsaid};
    let demo = Demo { requests: 5, ..Demo::default() };
    check(demo, Policy::Everywhere, "failed with status 502", Unsaid).await;
    check(demo, Policy::Ownership, "failed at D, 3 hops down: retry closed", Closed).await;
    let a = Demo { fail: Node::A, ..demo };
    check(a, Policy::Ownership, "failed at A itself: retry open", Open).await;
    let b = Demo { fail: Node::B, ..demo };
    check(b, Policy::Ownership, "failed at B, 1 hop down: retry closed", Closed).await;
}

#[tokio::test]
async fn a_rate_of_zero_fails_nothing() {
    let demo = Demo { failure_rate: 0.0, requests: 20, ..Demo::default() };
    let run = demo.run(Policy::Everywhere).await.unwrap();
    assert_eq!((run.handled, run.report.client_errors), (PerNode([20; 7]), 0));
}

#[test]
fn nothing_is_expected_where_nothing_is_given() {
    let context_loss = Some(Node::C);
    let hang = Demo { hang: true, ..demo() };
    let two = Demo { context_loss, no_claims: Some(Node::D), ..demo() };
    let lost_and_hang = Demo { context_loss, ..hang };
    for (demo, given) in [
        (demo(), &Policy::ALL[..]),
        (Demo { failure_rate: 0.5, ..demo() }, &[Policy::None]),
        (hang, &[Policy::None, Policy::Everywhere, Policy::Budget, Policy::Ownership]),
        (lost_and_hang, &[Policy::None, Policy::Everywhere, Policy::Budget]),
        (two, &[Policy::None, Policy::Everywhere, Policy::Budget]),
    ] {
        let found = Policy::ALL.into_iter().filter(|&policy| demo.expected(policy).is_some());
        assert_eq!(found.collect::<Vec<_>>(), given, "{demo:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_shown_is_refused_with_what_could() {
    async fn check(demo: Demo, misuse: Misuse, message: &str) {
        let error = demo.run(Policy::None).await.unwrap_err();
        assert!(matches!(error, DemoError::Misuse(found) if found == misuse), "{error:?}");
        assert_eq!(error.to_string(), message);
    }
    let d = Some(Node::D);
    let demo = demo();
    let requests = "allowed is 1 to 1000000";
    let rate = "allowed is 0 to 1";
    for wrong in [0, 1_000_001] {
        let message = format!("the number of requests is {wrong}; {requests}");
        check(Demo { requests: wrong, ..demo }, Misuse::Requests(wrong), &message).await;
    }
    for wrong in [-0.1, 1.1, f64::INFINITY] {
        let message = format!("the failure rate is {wrong}; {rate}");
        check(Demo { failure_rate: wrong, ..demo }, Misuse::FailureRate(wrong), &message).await;
    }
    for wrong in [0, 101] {
        let message = format!("the percentage of bad keys is {wrong}; allowed is 1 to 100");
        check(Demo { bad_keys: Some(wrong), ..demo }, Misuse::BadKeys(wrong), &message).await;
    }
    let hang = Demo { hang: true, ..demo };
    for beside in [hang, Demo { failure_rate: 0.5, ..demo }] {
        check(
            Demo { bad_keys: Some(5), ..beside },
            Misuse::BadKeysBeside(Node::D),
            "for a D that hangs or fails at a rate no key is bad; leave one of them out",
        )
        .await;
    }
    check(
        Demo { failure_rate: 0.5, ..hang },
        Misuse::HangAtRate(Node::D),
        "a hanging D answers no request, whatever the failure rate; leave one of them out",
    )
    .await;
    check(
        Demo { shield: d, ..hang },
        Misuse::HangBehindShield(Node::D),
        "a shield is told in answers, and above a hanging D none comes in time; leave one of \
         them out",
    )
    .await;
    check(
        Demo { shield: d, no_claims: d, ..demo },
        Misuse::ShieldWithoutOnus(Node::D),
        "a shield on D needs Onus there; leave out the shield, or choose another service \
         without claims",
    )
    .await;
    check(
        Demo { context_loss: d, no_claims: d, ..demo },
        Misuse::ContextWithoutOnus(Node::D),
        "D has no context to lose without Onus; choose two services",
    )
    .await;
    let no_calls = "G calls nobody, so its calls cannot be changed; allowed is A to F";
    let g = Some(Node::G);
    for wrong in [Demo { context_loss: g, ..demo }, Demo { no_retries: g, ..demo }] {
        check(wrong, Misuse::NoCalls(Node::G), no_calls).await;
    }
}
