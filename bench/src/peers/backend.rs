//! What every request ends at: a server that says what its path asks for.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use tokio::net::TcpListener;

use super::connection;

/// The paths that a backend knows. `/error?p=5` fails 5 % of its requests, `/delay?ms=20` waits.
pub(crate) const SMALL: &str = "/small";
pub(crate) const LARGE: &str = "/large";
pub(crate) const ERROR: &str = "/error";
pub(crate) const DELAY: &str = "/delay";

/// The body of a small answer.
pub(crate) const SMALL_BODY: &[u8] = b"hello bench\n";
/// The length of a large one.
pub(crate) const LARGE_LENGTH: usize = 64 << 10;
/// A message of gRPC: no compression, its length, and as much as in a small answer.
pub(crate) const GRPC_MESSAGE: &[u8] = b"\0\0\0\0\x0chello bench\n";

/// Serves until it is stopped, and counts requests in `served`.
pub(crate) async fn serve(listener: TcpListener, served: Arc<AtomicU64>) {
    let large = Bytes::from(vec![b'x'; LARGE_LENGTH]);
    loop {
        // A connection that broke before it was accepted is its client's affair.
        let Ok((stream, _)) = listener.accept().await else { continue };
        let (large, served) = (large.clone(), served.clone());
        let service = service_fn(move |request| {
            served.fetch_add(1, Ordering::Relaxed);
            answer(request, large.clone())
        });
        tokio::spawn(connection::serve(stream, service));
    }
}

async fn answer(request: Request<Incoming>, large: Bytes) -> Result<Response<Answer>, Infallible> {
    let is_grpc = request.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == GRPC);
    let path = request.uri().path().to_owned();
    let asked = request.uri().query().map(str::to_owned);
    if is_grpc {
        // A unary call is read to its end before it is answered; a client that broke is gone.
        let _ = request.into_body().collect().await;
        return Ok(grpc());
    }
    let number = || asked.as_deref()?.split_once('=')?.1.parse::<u64>().ok();
    let (status, data) = match path.as_str() {
        SMALL => (StatusCode::OK, Bytes::from_static(SMALL_BODY)),
        LARGE => (StatusCode::OK, large),
        ERROR => {
            let percent = number().unwrap_or(100);
            let fails = fastrand::u64(0..100) < percent;
            let status = if fails { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            (status, Bytes::from_static(SMALL_BODY))
        }
        DELAY => {
            tokio::time::sleep(Duration::from_millis(number().unwrap_or(0))).await;
            (StatusCode::OK, Bytes::from_static(SMALL_BODY))
        }
        _ => (StatusCode::NOT_FOUND, Bytes::new()),
    };
    let mut response = Response::new(Answer { data: Some(data), trailers: None });
    *response.status_mut() = status;
    Ok(response)
}

fn grpc() -> Response<Answer> {
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert("grpc-status", HeaderValue::from_static("0"));
    let data = Some(Bytes::from_static(GRPC_MESSAGE));
    let mut response = Response::new(Answer { data, trailers: Some(trailers) });
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(GRPC));
    response
}

/// One block of data, and trailers where there are any.
pub(crate) struct Answer {
    data: Option<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(data) = self.data.take() {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.trailers {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.data.as_ref().map_or(0, Bytes::len) as u64),
        }
    }
}

/// The type of gRPC's messages.
pub(crate) const GRPC: &str = "application/grpc";
