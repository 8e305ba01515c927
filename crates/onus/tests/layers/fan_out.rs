//! Several calls in one request: in a row, at once, cancelled and given up.
//!
//! Each row is a handler that calls `payments` and `ledger`; what it answers says whether a retry
//! above is still open.

use std::pin::Pin;
use std::time::Duration;

use http::{Request, Response};
use onus::{Onus, OnusBuilder, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Client, Pieces, Reply, ask, counted, get, paused, said, serve};

type Handler = fn(Client, Client) -> Pin<Box<dyn Future<Output = u16> + Send>>;

/// The handler's clients have two attempts each, without a wait between them, unless `configure`
/// says otherwise.
struct Row {
    handler: Handler,
    configure: fn(OnusBuilder) -> OnusBuilder,
    payments: Reply,
    ledger: Reply,
}

/// What the answer says, and the finished requests that taught something about each edge.
#[track_caller]
fn check(row: Row, expected: &str, taught: (u64, u64)) {
    let (status, said, taught_now) = paused(async {
        let builder = (row.configure)(Onus::builder("checkout").enforce());
        let onus = builder.build().unwrap();
        let client = |name: &str, reply: Reply| onus.outbound(name).layer(Callee::new([reply]));
        let payments = client("payments", row.payments);
        let ledger = client("ledger", row.ledger);
        let mut node = serve(&onus, move |_| {
            let status = (row.handler)(payments.clone(), ledger.clone());
            async move { answer(status.await) }
        });
        let response = ask(&mut node, get("/pay")).await;
        let (head, body) = response.into_parts();
        drop(body);
        let taught = |callee| counted(&onus, "onus_edge_requests_total", &[("callee", callee)]);
        (head.status, said(&head.headers), (taught("payments"), taught("ledger")))
    });
    let expected_status = if expected == "nothing" { 200 } else { 503 };
    assert_eq!(status, expected_status);
    assert_eq!(said, expected);
    assert_eq!(taught_now, taught);
}

fn answer(status: u16) -> Response<Pieces> {
    Response::builder().status(status).body(Pieces::empty()).unwrap()
}

/// Ends as `Err` where the callee failed.
async fn call(client: Client) -> Result<(), ()> {
    let response = client.oneshot(get("/")).await.map_err(drop)?;
    if response.status().is_server_error() { Err(()) } else { Ok(()) }
}

fn status(result: Result<(), ()>) -> u16 {
    if result.is_ok() { 200 } else { 503 }
}

fn row(handler: Handler, payments: Reply, ledger: Reply) -> Row {
    let configure = |b: OnusBuilder| b.retry("payments", two()).retry("ledger", two());
    Row { handler, configure, payments, ledger }
}

impl Row {
    /// The same handler where nothing is retried.
    fn without_retries(self) -> Self {
        Self { configure: |b| b, ..self }
    }

    fn with_retries_of_ledger_only(self) -> Self {
        Self { configure: |b| b.retry("ledger", two()), ..self }
    }
}

fn two() -> RetryPolicy {
    RetryPolicy::attempts(2).no_budget().no_probes().backoff(Duration::ZERO, Duration::ZERO)
}

fn claimed() -> Reply {
    Reply::says("claimed")
}

fn unclaimed() -> Reply {
    Reply::says("unclaimed")
}

const LIMIT: Duration = Duration::from_secs(1);

#[test]
fn one_after_the_other() {
    // [claim-5] [claim-6] [claim-8]
    let handler: Handler = |payments, ledger| {
        Box::pin(async {
            let (first, second) = (call(payments).await, call(ledger).await);
            status(first.and(second))
        })
    };
    let row = |payments, ledger| row(handler, payments, ledger);
    check(row(Reply::ok(), Reply::ok()), "nothing", (1, 1));
    check(row(claimed(), Reply::ok()), "unclaimed exhausted", (1, 1));
    check(row(Reply::ok(), claimed()), "unclaimed exhausted", (1, 1));
    check(row(claimed(), claimed()).without_retries(), "claimed handoff", (1, 1));
    let lost = row(claimed(), Reply::breaks()).without_retries();
    check(lost, "claimed silent handoff", (1, 1));
    // One call whose retries are used up or refused is enough.
    check(row(claimed(), claimed()).with_retries_of_ledger_only(), "unclaimed exhausted", (1, 1));
    check(
        row(claimed(), unclaimed()).with_retries_of_ledger_only(),
        "unclaimed suppressed",
        (1, 1),
    );
}

#[test]
fn both_at_once() {
    let handler: Handler = |payments, ledger| {
        Box::pin(async {
            let (first, second) = tokio::join!(call(payments), call(ledger));
            status(first.and(second))
        })
    };
    let row = |payments, ledger| row(handler, payments, ledger);
    let late = Duration::from_millis(50);
    check(row(claimed().after(late), unclaimed()), "unclaimed exhausted", (1, 1));
    check(row(claimed(), unclaimed().after(late)), "unclaimed exhausted", (1, 1));
    check(row(claimed(), Reply::ok().after(late)).without_retries(), "claimed handoff", (1, 1));
    check(row(Reply::ok(), Reply::ok()), "nothing", (1, 1));
}

#[test]
fn the_first_failure_cancels_the_other_call() {
    // [drop-1] [drop-2] [drop-4] [class-2]
    let handler: Handler = |payments, ledger| {
        Box::pin(async { status(tokio::try_join!(call(payments), call(ledger)).map(|_| ())) })
    };
    let row = |payments, ledger| row(handler, payments, ledger);
    // The failed call is to blame; the one that was cancelled for it says nothing.
    let late = Duration::from_millis(50);
    check(row(unclaimed().after(late), Reply::hangs()), "unclaimed suppressed", (1, 0));
    let handed = row(claimed().after(late), Reply::hangs());
    check(handed.without_retries(), "claimed handoff", (1, 0));
    // The cancelled call had been retried, and must not be once more from above.
    let retried = row(claimed().after(late * 3), claimed().after(late * 2));
    check(retried.with_retries_of_ledger_only(), "unclaimed in-flight", (1, 0));
    let waits = row(claimed().after(late), claimed().header("retry-after", "5"));
    check(waits.with_retries_of_ledger_only(), "claimed handoff", (1, 0));
}

#[test]
fn a_call_without_an_answer_in_time_is_in_flight() {
    // [drop-3] [drop-5] [criteria-3] [class-2]
    let handler: Handler = |payments, _| {
        Box::pin(async {
            status(tokio::time::timeout(LIMIT, call(payments)).await.unwrap_or(Err(())))
        })
    };
    let row = |payments| row(handler, payments, Reply::ok());
    check(row(Reply::hangs()), "claimed silent handoff", (0, 0));
    // In its second attempt.
    let slow = claimed().after(LIMIT * 2 / 3);
    check(row(slow.clone()), "unclaimed in-flight", (0, 0));
    check(row(slow).without_retries(), "claimed handoff", (1, 0));
    // Before its second attempt: what the first one read counts.
    let waits = claimed().header("retry-after", "5");
    check(row(waits.clone()), "claimed handoff", (0, 0));
    let missing = Reply::status(503).header("retry-after", "5");
    check(row(missing), "claimed silent handoff", (0, 0));
    check(row(Reply::ok()), "nothing", (1, 0));
}

#[test]
fn who_wins_a_race_cancels_the_other() {
    // [drop-4]
    let handler: Handler = |payments, ledger| {
        Box::pin(async {
            tokio::select! {
                biased;
                first = call(payments) => status(first),
                second = call(ledger) => status(second),
            }
        })
    };
    let row = |payments, ledger| row(handler, payments, ledger);
    let late = Duration::from_millis(50);
    check(row(Reply::hangs(), Reply::ok().after(late)), "nothing", (0, 1));
    check(row(Reply::hangs(), unclaimed().after(late)), "unclaimed suppressed", (0, 1));
    let handed = row(Reply::hangs(), claimed().after(late));
    check(handed.without_retries(), "claimed handoff", (0, 1));
}

#[test]
fn dropped_calls_are_judged_when_the_answer_is_made() {
    // [drop-1] [drop-3]
    let handler: Handler = |payments, ledger| {
        Box::pin(async {
            let first = tokio::time::timeout(LIMIT, call(payments)).await.unwrap_or(Err(()));
            let second = call(ledger).await;
            status(first.and(second))
        })
    };
    let row = |payments, ledger| row(handler, payments, ledger).without_retries();
    check(row(Reply::hangs(), Reply::ok()), "claimed silent handoff", (0, 1));
    // A later failure shows that the dropped call may have been given up for it.
    check(row(Reply::hangs(), claimed()), "claimed handoff", (0, 1));
    let optional = Row { configure: |b| b.optional("ledger"), ..row(Reply::hangs(), claimed()) };
    check(optional, "claimed silent handoff", (0, 1));
}

#[test]
fn tasks_belong_to_the_request_or_are_lost() {
    // [claim-2] [correlate-5]
    let kept: Handler =
        |payments, _| Box::pin(async { status(onus::spawn(call(payments)).await.unwrap()) });
    let wrapped: Handler = |payments, _| {
        Box::pin(async {
            let call = onus::InboundScope::current().wrap(call(payments));
            status(tokio::spawn(call).await.unwrap())
        })
    };
    let lost: Handler =
        |payments, _| Box::pin(async { status(tokio::spawn(call(payments)).await.unwrap()) });
    for handler in [kept, wrapped] {
        check(row(handler, claimed(), Reply::ok()), "unclaimed exhausted", (1, 0));
        check(row(handler, Reply::ok(), Reply::ok()), "nothing", (1, 0));
    }
    check(row(lost, claimed(), Reply::ok()), "claimed context-lost", (0, 0));
    check(row(lost, Reply::ok(), Reply::ok()), "nothing", (0, 0));
}

#[test]
fn an_answer_does_not_wait_for_its_tasks() {
    // [drop-1] [drop-3]
    let handler: Handler = |payments, _| {
        Box::pin(async {
            let task = onus::spawn(call(payments));
            // The call is under way when the answer is made.
            tokio::task::yield_now().await;
            drop(task);
            503
        })
    };
    check(row(handler, Reply::hangs(), Reply::ok()), "claimed silent handoff", (0, 0));
    let slow = claimed().after(LIMIT);
    check(row(handler, slow, Reply::ok()), "claimed silent handoff", (0, 0));
}

#[test]
fn untied_calls_are_counted() {
    // [correlate-5]
    let untied = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let client = onus.outbound("payments").layer(Callee::new([Reply::ok()]));
        let mut node = serve(&onus, move |_: Request<Pieces>| {
            let client = client.clone();
            async move {
                let tied = onus::spawn(call(client.clone())).await.unwrap();
                let lost = tokio::spawn(call(client)).await.unwrap();
                answer(status(tied.and(lost)))
            }
        });
        ask(&mut node, get("/pay")).await;
        counted(&onus, "onus_untied_calls_total", &[("callee", "payments")])
    });
    assert_eq!(untied, 1);
}
