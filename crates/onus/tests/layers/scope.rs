//! Which request a piece of code serves, while the handler runs and while its body is made.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use onus::{InboundScope, Onus, RetryPolicy};
use tower::{Layer, ServiceExt, service_fn};

use crate::cast::{Broken, Callee, Client, Pieces, Reply, ask, counted, get, paused, serve};

#[test]
fn handlers_and_what_they_await_are_in_the_scope() {
    let seen = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let mut node = serve(&onus, |_: Request<Pieces>| {
            // Before the first poll, after a wait, and in a task that keeps the scope.
            let before = InboundScope::current().is_some();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let after = InboundScope::current().is_some();
                let spawned = onus::spawn(async { InboundScope::current().is_some() });
                let lost = tokio::spawn(async { InboundScope::current().is_some() });
                let seen = [before, after, spawned.await.unwrap(), lost.await.unwrap()];
                Response::builder()
                    .header("seen", format!("{seen:?}"))
                    .body(Pieces::empty())
                    .unwrap()
            }
        });
        let response = ask(&mut node, get("/")).await;
        assert!(!InboundScope::current().is_some(), "the scope is left again");
        response.headers()["seen"].to_str().unwrap().to_owned()
    });
    assert_eq!(seen, "[true, true, true, false]");
}

#[test]
fn requests_on_one_thread_do_not_mix() {
    let claims = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let slow = Duration::from_secs(1);
        let client =
            |reply: Reply| onus.outbound("payments").layer(Callee::new([reply.after(slow)]));
        let (fails, works) = (client(Reply::says("claimed")), client(Reply::ok()));
        let call = |client: Client| {
            serve(&onus, move |request| {
                let client = client.clone();
                async move {
                    client.oneshot(request).await.unwrap();
                    Response::builder().status(500).body(Pieces::empty()).unwrap()
                }
            })
        };
        let (mut first, mut second) = (call(fails), call(works));
        let (first, second) = tokio::join!(ask(&mut first, get("/")), ask(&mut second, get("/")));
        [first, second].map(|response| crate::cast::said(response.headers()))
    });
    assert_eq!(claims, ["claimed handoff", "claimed own"]);
}

/// A body that makes a call before each of its frames, and tells how it went in its trailers.
struct Calling {
    client: Client,
    call: Option<Pin<Box<dyn Future<Output = u16> + Send>>>,
    left: usize,
    last: u16,
}

impl Body for Calling {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.left == 0 {
            let status = if self.last == 200 { "0" } else { "14" };
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static(status));
            self.left = usize::MAX;
            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
        }
        if self.left == usize::MAX {
            return Poll::Ready(None);
        }
        let client = self.client.clone();
        let call = self.call.get_or_insert_with(|| {
            let call = client.oneshot(get("/"));
            Box::pin(async { call.await.unwrap().status().as_u16() })
        });
        self.last = ready!(call.as_mut().poll(cx));
        self.call = None;
        self.left -= 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"part")))))
    }
}

#[test]
fn calls_made_while_the_body_is_made_belong_to_the_request() {
    // [claim-8] [correlate-1]
    let check = |replies: Vec<Reply>, expected, taught: u64| {
        let (claim, seen) = paused(async {
            let policy = RetryPolicy::attempts(2).no_budget().no_probes();
            let builder = Onus::builder("checkout").enforce().retry("payments", policy);
            let onus = builder.build().unwrap();
            let client = onus.outbound("payments").layer(Callee::new(replies));
            let node = onus.inbound().layer(service_fn(move |_: Request<Pieces>| {
                let body = Calling { client: client.clone(), call: None, left: 3, last: 0 };
                let response = Response::builder().header("content-type", "application/grpc");
                async { Ok::<_, Broken>(response.body(body).unwrap()) }
            }));
            let response = node.oneshot(get("/")).await.unwrap();
            let all = response.into_body().collect().await.unwrap();
            let taught = counted(&onus, "onus_edge_requests_total", &[("callee", "payments")]);
            assert_eq!(counted(&onus, "onus_untied_calls_total", &[]), 0);
            (crate::cast::said(all.trailers().unwrap()), taught)
        });
        assert_eq!((&*claim, seen), (expected, taught));
    };
    check(vec![Reply::ok()], "nothing", 1);
    check(vec![Reply::ok(), Reply::ok(), Reply::says("unclaimed")], "unclaimed suppressed", 1);
    check(vec![Reply::ok(), Reply::ok(), Reply::says("claimed")], "unclaimed exhausted", 1);
}

#[test]
fn what_a_task_does_after_the_answer_is_not_booked_on_the_request() {
    // [drop-4] [class-2]
    let (taught, clean, late) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let reply = Reply::says("claimed").after(Duration::from_secs(1));
        let client = onus.outbound("payments").layer(Callee::new([reply]));
        let late = Arc::new(Mutex::new(None));
        let (task, noted) = (late.clone(), client);
        let mut node = serve(&onus, move |_| {
            let (client, task) = (noted.clone(), task.clone());
            async move {
                let call = onus::spawn(client.oneshot(get("/")));
                tokio::task::yield_now().await;
                *task.lock().unwrap() = Some(call);
                Response::new(Pieces::empty())
            }
        });
        let response = ask(&mut node, get("/")).await;
        assert_eq!(crate::cast::said(response.headers()), "nothing");
        drop(response);
        let task = late.lock().unwrap().take().unwrap();
        let status = task.await.unwrap().unwrap().status();
        let taught = counted(&onus, "onus_edge_requests_total", &[]);
        let clean = counted(&onus, "onus_clean_requests_total", &[("outcome", "ok")]);
        (taught, clean, status)
    });
    assert_eq!((taught, clean, late.as_u16()), (0, 1, 503));
}

#[test]
fn calls_of_a_task_that_outlives_its_request_belong_to_nobody() {
    // [mark-2] [correlate-5]
    let (attempts, untied) = paused(async {
        let onus = Onus::builder("checkout").build().unwrap();
        let callee = Callee::new([Reply::ok()]);
        let client = onus.outbound("payments").layer(callee.clone());
        let queue: Arc<Mutex<Vec<tokio::task::JoinHandle<()>>>> = Arc::default();
        let queued = queue.clone();
        let mut node = serve(&onus, move |_| {
            let client = client.clone();
            let job = async move {
                client.clone().oneshot(get("/now")).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
                client.oneshot(get("/later")).await.unwrap();
            };
            queued.lock().unwrap().push(onus::spawn(job));
            async {
                tokio::task::yield_now().await;
                Response::new(Pieces::empty())
            }
        });
        let mut request = get("/");
        request.headers_mut().insert("onus-mark", http::HeaderValue::from_static("1"));
        drop(ask(&mut node, request).await);
        let job = queue.lock().unwrap().pop().unwrap();
        job.await.unwrap();
        (callee.attempts(), counted(&onus, "onus_untied_calls_total", &[]))
    });
    assert_eq!((attempts, untied), (vec!["- marked".to_owned(), "-".to_owned()], 1));
}
