//! A server on loopback that does what a function says, and notes what it was sent; over HTTP/1, or
//! over HTTP/2 where the client begins so.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

use crate::cast::Pieces;

/// A server on loopback. It ends when it is dropped.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    notes: Arc<Mutex<Notes>>,
    accepting: AbortHandle,
}

#[derive(Default)]
struct Notes {
    connections: usize,
    requests: Vec<Request<Bytes>>,
}

/// What becomes of a request, given its number from 0: an answer, or none at all.
pub(crate) type Answers = fn(usize, &Request<Bytes>) -> Option<Response<Pieces>>;

impl Peer {
    pub(crate) async fn start(answers: Answers) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let notes = Arc::new(Mutex::new(Notes::default()));
        let noted = notes.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // As real servers do; the last small packet would otherwise wait for an ack.
                stream.set_nodelay(true).unwrap();
                noted.lock().unwrap().connections += 1;
                let noted = noted.clone();
                let service = service_fn(move |request| answer(noted.clone(), answers, request));
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    server.serve_connection(TokioIo::new(stream), service).await
                });
            }
        });
        Self { address, notes, accepting: accepting.abort_handle() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        self.notes.lock().unwrap().connections
    }

    /// The requests since the last time.
    pub(crate) fn take(&self) -> Vec<Request<Bytes>> {
        std::mem::take(&mut self.notes.lock().unwrap().requests)
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn answer(
    notes: Arc<Mutex<Notes>>,
    answers: Answers,
    request: Request<hyper::body::Incoming>,
) -> Result<Response<Pieces>, Infallible> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.map(|all| all.to_bytes()).unwrap_or_default();
    let request = Request::from_parts(head, body);
    let answer = {
        let requests = &mut notes.lock().unwrap().requests;
        let answer = answers(requests.len(), &request);
        requests.push(request);
        answer
    };
    match answer {
        Some(answer) => Ok(answer),
        None => std::future::pending().await,
    }
}
