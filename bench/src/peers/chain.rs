//! A chain of services, each with a sidecar that tries every call twice, and the last one fails.
//!
//! The services are of this process and know nothing of Onus: they hand on what tracing hands on.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::connection;
use super::subject::{Mode, Sidecar};

/// Requests that the last service got for each one that came in at the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Chain {
    /// How many came in.
    pub(crate) roots: u64,
    /// What reached the last service in mode enforce.
    pub(crate) with_ownership: u64,
    /// And in mode off.
    pub(crate) without: u64,
}

impl Chain {
    /// Exactly one hop tries twice, against every hop.
    pub(crate) fn is_exact(&self) -> bool {
        self.with_ownership == 2 * self.roots && self.without == 2_u64.pow(HOPS) * self.roots
    }
}

/// Sends the same requests through the chain in both modes.
pub(crate) async fn count(program: &Path, folder: &Path) -> anyhow::Result<Chain> {
    let with_ownership = requests_at_the_end(program, Mode::Enforce, folder).await?;
    let without = requests_at_the_end(program, Mode::Off, folder).await?;
    Ok(Chain { roots: ROOTS, with_ownership, without })
}

async fn requests_at_the_end(program: &Path, mode: Mode, folder: &Path) -> anyhow::Result<u64> {
    let served = Arc::new(AtomicU64::new(0));
    let mut sidecars = Vec::new();
    // From the last service to the first, so that each knows where its callee is.
    let mut callee: Option<(&'static str, SocketAddr)> = None;
    for name in NAMES.into_iter().rev() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let app = listener.local_addr()?;
        let callees = callee.map_or_else(String::new, |(name, address)| {
            format!("callees: {{{name}: {{address: \"{address}\", {TWICE}}}}}\n")
        });
        let (outbound, relays) = watch::channel(None);
        match callee {
            None => tokio::spawn(fail(listener, served.clone())),
            Some((callee, _)) => tokio::spawn(relay(listener, callee, relays)),
        };
        let sidecar = Sidecar::start(name, program, mode, app, &callees, folder).await?;
        outbound.send_replace(Some(sidecar.outbound));
        callee = Some((name, sidecar.inbound));
        sidecars.push(sidecar);
    }
    let (_, first) = callee.context("there is a first service")?;
    for root in 1..=ROOTS {
        let parent = format!("00-{root:032x}-{root:016x}-01");
        let parent = HeaderValue::from_str(&parent)?;
        let response = ask(first, NAMES[0], vec![(TRACE_PARENT, parent)]).await?;
        let status = response.status();
        ensure!(status == StatusCode::SERVICE_UNAVAILABLE, "the chain answered {status}");
        response.into_body().collect().await?;
    }
    Ok(served.load(Ordering::Relaxed))
}

/// The last service.
async fn fail(listener: TcpListener, served: Arc<AtomicU64>) {
    let service = service_fn(move |_: Request<Incoming>| {
        served.fetch_add(1, Ordering::Relaxed);
        async { Ok::<_, Infallible>(answer(StatusCode::SERVICE_UNAVAILABLE)) }
    });
    serve(listener, service).await;
}

/// A service that calls the next one through its sidecar and answers as that did.
async fn relay(
    listener: TcpListener,
    callee: &'static str,
    outbound: watch::Receiver<Option<SocketAddr>>,
) {
    let service = service_fn(move |request: Request<Incoming>| {
        let outbound = *outbound.borrow();
        async move {
            let handed_on = [TRACE_PARENT, TRACE_STATE].into_iter().filter_map(|name| {
                let value = request.headers().get(&name)?.clone();
                Some((name, value))
            });
            let asked = match outbound {
                Some(outbound) => ask(outbound, callee, handed_on.collect()).await,
                None => Err(anyhow::anyhow!("the sidecar is not there")),
            };
            let status = asked.map_or(StatusCode::BAD_GATEWAY, |response| response.status());
            Ok::<_, Infallible>(answer(status))
        }
    });
    serve(listener, service).await;
}

async fn serve<S>(listener: TcpListener, service: S)
where
    S: hyper::service::Service<
            Request<Incoming>,
            Response = Response<Empty<Bytes>>,
            Error = Infallible,
        > + Clone
        + Send
        + 'static,
    S::Future: Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(connection::serve(stream, service.clone()));
    }
}

fn answer(status: StatusCode) -> Response<Empty<Bytes>> {
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    response
}

async fn ask(
    to: SocketAddr,
    host: &'static str,
    headers: Vec<(HeaderName, HeaderValue)>,
) -> anyhow::Result<Response<Incoming>> {
    let io = TokioIo::new(TcpStream::connect(to).await?);
    let (mut sender, connection) = http1::handshake(io).await?;
    tokio::spawn(connection);
    let mut request = Request::new(Empty::<Bytes>::new());
    request.headers_mut().insert(HOST, HeaderValue::from_static(host));
    request.headers_mut().extend(headers);
    Ok(sender.send_request(request).await?)
}

/// Five services are four hops.
const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const HOPS: u32 = 4;
const ROOTS: u64 = 25;

/// Two attempts, the second nearly at once.
const TWICE: &str = "retry: {attempts: 2, no-budget: true, no-probes: true, \
                     backoff-base: 1ms, backoff-max: 2ms}";

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_too_many_is_not_exact() {
        fn check(with_ownership: u64, without: u64, expected: bool) {
            let chain = Chain { roots: 10, with_ownership, without };
            assert_eq!(chain.is_exact(), expected, "{chain:?}");
        }
        check(20, 160, true);
        check(21, 160, false);
        check(20, 159, false);
        assert_eq!(NAMES.len(), HOPS as usize + 1);
    }
}
