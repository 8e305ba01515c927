//! Caller and callee whose limits end at the same time: who is first changes nothing for others.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Request;
use onus::replay::ReplayBody;
use onus::{Onus, RetryPolicy};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::cast::{Callee, Pieces, Reply, counted, get, paused, relay, said, serve};

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn limited(time: u64) -> RetryPolicy {
    let policy = RetryPolicy::attempts(2).no_budget().no_probes().backoff(ms(0), ms(0));
    policy.per_try_timeout(ms(time))
}

/// A calls B, whose calls of C hang: each attempt of A ends after 100 ms, each of B after `b`.
/// What A answers, without its reason, the attempts at B and at C, and what B has learnt of C.
fn chain(b: u64) -> (String, Vec<String>, usize, u64) {
    paused(async {
        let own = Onus::builder("b").enforce().retry("c", limited(b)).build().unwrap();
        let c = Callee::new([Reply::hangs()]);
        let client = own.outbound("c").layer(c.clone());
        let node = Arc::new(Mutex::new(serve(&own, move |call| relay(client.clone(), call))));
        let attempts = Arc::new(Mutex::new(Vec::new()));
        let seen = attempts.clone();
        let to_b = service_fn(move |request: Request<ReplayBody<Pieces>>| {
            let (head, _) = request.into_parts();
            let text = |name| head.headers.get(name).map_or("-", |value| value.to_str().unwrap());
            let marked = if head.headers.contains_key("onus-mark") { " marked" } else { "" };
            seen.lock().unwrap().push(format!("{}{marked}", text("onus-attempt")));
            node.lock().unwrap().call(Request::from_parts(head, Pieces::empty()))
        });
        let a = Onus::builder("a").enforce().retry("b", limited(100)).build().unwrap();
        let client = a.outbound("b").layer(to_b);
        let mut node = a.inbound().layer(service_fn(move |request: Request<Pieces>| {
            let client = client.clone();
            async move {
                let answer = client.oneshot(request).await?;
                Ok::<_, std::convert::Infallible>(answer.map(|_| Pieces::empty()))
            }
        }));
        let answer = node.call(get("/")).await.unwrap();
        let said = said(answer.headers());
        let claim = said.split(' ').next().unwrap();
        let text = format!("{} {claim}", answer.status().as_u16());
        let learnt = counted(&own, "onus_edge_requests_total", &[("caller_outcome", "ok")]);
        let attempts = attempts.lock().unwrap().clone();
        (text, attempts, c.seen().len(), learnt)
    })
}

#[test]
fn whose_limit_ends_first_changes_nothing_above() {
    // [mark-3] [deadline-4] S29
    // B is told what A allows, and answers a little before that is over.
    for b in [90, 94, 95, 96, 99, 100, 101] {
        let (answer, attempts, calls, learnt) = chain(b);
        assert_eq!(answer, "504 unclaimed", "{b} ms");
        assert_eq!(attempts, ["-", "2 marked"], "{b} ms");
        assert_eq!((calls, learnt), (2, 0), "{b} ms");
    }
}
