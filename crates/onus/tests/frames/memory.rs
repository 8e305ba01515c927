//! Many large uploads at once: what is kept to send them again stays within its limits.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use onus::Onus;
use onus::replay::ReplayLimits;
use tokio::task::JoinSet;

use super::line::Line;
use super::notes::Stub;
use super::relay::{Speaks::Http1, plain, relay, twice};
use crate::cast::{Pieces, until};

/// 200 uploads of 1 GiB by hand, in a release build:
/// `cargo test --release -p onus --all-features --test main frames::memory -- --nocapture`.
const UPLOADS: usize = if cfg!(debug_assertions) { 32 } else { 200 };
const SIZE: usize = if cfg!(debug_assertions) { 16 * MIB } else { 1024 * MIB };

const MIB: usize = 1024 * 1024;

/// What is kept of an upload that has stopped.
const PART: usize = 1024;

/// A large body that is made while it is read.
struct Flood {
    left: usize,
    /// Whether the size is told beforehand.
    sized: bool,
}

static CHUNK: [u8; 64 * 1024] = [b'x'; 64 * 1024];

impl Body for Flood {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = &CHUNK[..self.left.min(CHUNK.len())];
        self.left -= chunk.len();
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(chunk)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        if self.sized { SizeHint::with_exact(self.left as u64) } else { SizeHint::new() }
    }
}

/// A callee that reads uploads to their ends and answers then with how much it was.
async fn reads_all() -> Stub {
    Stub::listen(|stream, _, _| async {
        let service = service_fn(|request: Request<Incoming>| async {
            let (mut body, mut all) = (request.into_body(), 0);
            while let Some(Ok(frame)) = body.frame().await {
                all += frame.data_ref().map_or(0, Bytes::len);
            }
            Ok::<_, Infallible>(Response::new(Pieces::sized(all.to_string())))
        });
        let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
    })
    .await
}

/// All uploads at once through a service with these limits: half of them
/// on the route that may retry, and half of each with a size that is told. The most that was kept.
async fn upload(limits: (usize, usize)) -> usize {
    let onus = Onus::builder("checkout").enforce().replay_limits(limits.0, limits.1);
    let onus = onus.retry_procedure("peer", "PUT", twice()).build().unwrap();
    let callee = reads_all().await;
    let service = relay(&onus, Http1, Http1, callee.address).await;
    // One more, which stops behind its first part: that is kept all the while.
    let mut stopped = Line::to(service).await;
    stopped.say("PUT / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n").await;
    stopped.say(["400\r\n", &"x".repeat(PART), "\r\n"].concat()).await;
    until(|| onus.replay_limits().in_use() == PART).await;
    let peak = Arc::new(AtomicUsize::new(0));
    let (limits, seen) = (onus.replay_limits().clone(), peak.clone());
    let watch = tokio::spawn(async move {
        loop {
            seen.fetch_max(limits.in_use(), Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let mut uploads = JoinSet::new();
    for n in 0..UPLOADS {
        let body = Flood { left: SIZE, sized: n % 4 < 2 };
        let method = if n % 2 == 0 { Method::PUT } else { Method::POST };
        let request = Request::builder().method(method).uri(format!("http://{service}/"));
        let call = plain(Http1).request(request.body(body).unwrap());
        uploads.spawn(async {
            let response = call.await.unwrap();
            assert_eq!(response.status(), 200);
            response.into_body().collect().await.unwrap().to_bytes()
        });
    }
    let size = SIZE.to_string();
    assert!(uploads.join_all().await.iter().all(|came| *came == size), "each is whole");
    watch.abort();
    assert_eq!(onus.replay_limits().in_use(), PART);
    drop(stopped);
    until(|| onus.replay_limits().in_use() == 0).await;
    peak.load(Ordering::Relaxed)
}

/// The most memory that this process has had, in bytes, where the system tells it.
fn resident_peak() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? * 1024)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn uploads_are_kept_within_the_limits_and_arrive_whole() {
    // S09
    let per_request = ReplayLimits::PER_REQUEST_DEFAULT;
    for (total, most) in [
        (ReplayLimits::TOTAL_DEFAULT, UPLOADS / 2 * per_request + PART),
        // Less than two of them may keep.
        (per_request * 3 / 2, per_request * 3 / 2),
    ] {
        let peak = upload((per_request, total)).await;
        assert!((PART..=most).contains(&peak), "{peak} bytes kept, {most} allowed");
        println!(
            "{UPLOADS} uploads of {SIZE} bytes: {peak} bytes kept of {most} allowed, resident at \
             most {:?}, nearly all of it hyper's buffers",
            resident_peak()
        );
    }
}
