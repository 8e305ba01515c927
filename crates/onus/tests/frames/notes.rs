//! What a scripted peer was sent.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// A listener on loopback whose connections follow a script. It ends when it is dropped.
pub(crate) struct Stub {
    pub(crate) address: SocketAddr,
    notes: Arc<Notes>,
    accepting: AbortHandle,
}

/// What all connections of a stub have brought.
#[derive(Default)]
pub(crate) struct Notes {
    connections: Mutex<usize>,
    seen: Mutex<Vec<Seen>>,
}

/// One request, as far as the script has read it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl Stub {
    /// Runs `script` for each connection, with its number from 0.
    pub(crate) async fn listen<F>(
        script: impl Fn(TcpStream, usize, Arc<Notes>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let address = listener.local_addr().expect("it is bound");
        let notes = Arc::new(Notes::default());
        let noted = notes.clone();
        let accepting = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.expect("connections can be accepted");
                // As real servers do; the last small packet would otherwise wait for an ack.
                stream.set_nodelay(true).expect("it is a TCP stream");
                let number = noted.connected();
                tokio::spawn(script(stream, number, noted.clone()));
            }
        });
        Self { address, notes, accepting: accepting.abort_handle() }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn connections(&self) -> usize {
        *self.notes.connections.lock().expect("no script panics here")
    }

    /// The requests that scripts have read.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.notes.seen.lock().expect("no script panics here").clone()
    }

    /// How many requests for this path were read.
    pub(crate) fn executed(&self, path: &str) -> usize {
        self.seen().iter().filter(|seen| seen.uri.path() == path).count()
    }

    /// Number and mark of each attempt: "-", "2", "2 marked".
    pub(crate) fn attempts(&self) -> Vec<String> {
        self.seen().iter().map(Seen::attempt).collect()
    }
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Notes {
    pub(crate) fn note(&self, seen: Seen) {
        self.seen.lock().expect("no script panics here").push(seen);
    }

    pub(crate) fn requests(&self) -> usize {
        self.seen.lock().expect("no script panics here").len()
    }

    fn connected(&self) -> usize {
        let mut connections = self.connections.lock().expect("no script panics here");
        *connections += 1;
        *connections - 1
    }
}

impl Seen {
    fn attempt(&self) -> String {
        let number = self.headers.get("onus-attempt").map(|value| value.to_str());
        let mark = self.headers.get("onus-mark").map(|_| " marked").unwrap_or_default();
        format!("{}{mark}", number.map_or("-", |number| number.expect("it is a number")))
    }
}
