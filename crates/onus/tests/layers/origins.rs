//! One status, many origins: what a service says with its error tells whose it is, and the status
//! does not.

use std::time::Duration;

use http::{HeaderMap, Request, Response, header};
use onus::{Onus, OnusBuilder, RetryPolicy};
use tower::{Layer, ServiceExt};

use crate::cast::{Callee, Pieces, Reply, ask, paused, serve};

type Lines = &'static [(&'static str, &'static str)];

/// Two attempts, of a second each.
fn twice(builder: OnusBuilder) -> OnusBuilder {
    let policy = RetryPolicy::attempts(2).no_budget().no_probes().unsafe_methods();
    builder.retry("payments", policy.per_try_timeout(Duration::from_secs(1)))
}

/// The service `checkout`, whose handler calls `payments` if it calls at all, and answers the same
/// error whatever happens. What it says with that error: claim, origin and hops.
fn says(
    configure: fn(OnusBuilder) -> OnusBuilder,
    grpc: bool,
    script: Option<Reply>,
    headers: Lines,
) -> String {
    let request = move |path: &str| {
        let request = Request::post(path);
        let request =
            if grpc { request.header(header::CONTENT_TYPE, "application/grpc") } else { request };
        request.body(Pieces::empty()).unwrap()
    };
    paused(async move {
        let onus = configure(Onus::builder("checkout").enforce()).build().unwrap();
        let calls = script.is_some();
        let callee = Callee::new([script.unwrap_or_else(Reply::ok)]);
        let client = onus.outbound("payments").layer(callee);
        let mut node = serve(&onus, move |_| {
            let call = client.clone().oneshot(request("/pkg.B/Call"));
            async move {
                if calls {
                    let _ = call.await;
                }
                let answer = Response::builder();
                let answer = if grpc {
                    let answer = answer.header(header::CONTENT_TYPE, "application/grpc");
                    answer.header("grpc-status", "14")
                } else {
                    answer.status(503)
                };
                answer.body(Pieces::empty()).unwrap()
            }
        });
        let mut request = request("/pkg.A/Call");
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let answer = ask(&mut node, request).await;
        let status = answer.headers().get("grpc-status").map(|status| status.to_str().unwrap());
        assert_eq!((answer.status() == 503, status == Some("14")), (!grpc, grpc));
        line(answer.headers())
    })
}

fn line(headers: &HeaderMap) -> String {
    let line = headers["onus-claim"].to_str().unwrap();
    let parts = line.split(';').filter(|part| !part.starts_with("attempt="));
    parts.collect::<Vec<_>>().join(" ").replace("reason=", "").replace("kind=", "")
}

#[test]
fn one_status_says_whose_error_it_is() {
    // [claim-3] [claim-4] [wire-3] [wire-4] S77
    let check = |script: Option<Reply>, headers: Lines, expected: &str| {
        for grpc in [false, true] {
            let got = says(twice, grpc, script.clone(), headers);
            assert_eq!(got, expected, "{grpc} {script:?}");
        }
    };
    // Its own: no call, or none that failed.
    let own = "claimed own origin=\"checkout\" hops=0";
    check(None, &[], own);
    check(Some(Reply::ok().header("grpc-status", "0")), &[], own);
    // The callee's, or somebody's below it.
    let payments = "unclaimed exhausted origin=\"payments\" hops=1";
    let claimed = Reply::says("claimed;reason=own;origin=\"payments\";hops=0");
    check(Some(claimed), &[], payments);
    let below = Reply::says("unclaimed;reason=exhausted;origin=\"ledger\";hops=1");
    check(Some(below), &[], "unclaimed suppressed origin=\"ledger\" hops=2");
    // Somebody without Onus answers for the callee, or nobody does: the way to it is blamed.
    check(Some(Reply::status(503)), &[], payments);
    check(Some(Reply::breaks()), &[], payments);
    check(Some(Reply::hangs()), &[], payments);
    let marked = "unclaimed marked origin=\"payments\" hops=1";
    check(Some(Reply::breaks()), &[("onus-mark", "1")], marked);
    // Where this service may not retry, its caller may.
    for grpc in [false, true] {
        let optional = |b: OnusBuilder| twice(b).optional("payments");
        assert_eq!(says(optional, grpc, Some(Reply::status(503)), &[]), own);
        let handed = "claimed silent handoff origin=\"payments\" hops=1";
        assert_eq!(says(|b| b, grpc, Some(Reply::breaks()), &[]), handed);
    }
}
