//! HTTP/1.1 byte by byte: what a script reads and writes is what is on the wire.

use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::notes::{Notes, Seen, Stub};

/// A connection that speaks HTTP/1.1, at either end.
pub(crate) struct Line {
    stream: TcpStream,
    /// What was received and not read yet.
    rest: BytesMut,
    notes: Arc<Notes>,
    /// Which connection of the stub this is, from 0.
    pub(crate) number: usize,
}

/// The first line of a message, and its headers.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) first: String,
    pub(crate) headers: HeaderMap,
    /// The headers as they are written.
    pub(crate) lines: Vec<String>,
}

/// A stub that runs `script` on each of its connections.
pub(crate) async fn lines<F>(script: impl Fn(Line) -> F + Send + 'static) -> Stub
where
    F: Future<Output = ()> + Send + 'static,
{
    Stub::listen(move |stream, number, notes| {
        script(Line { stream, rest: BytesMut::new(), notes, number })
    })
    .await
}

impl Line {
    /// The calling end.
    pub(crate) async fn to(address: std::net::SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("it is a TCP stream");
        Self { stream, rest: BytesMut::new(), notes: Arc::default(), number: 0 }
    }

    /// Writes these bytes. A peer that has gone does not mind.
    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Reads a head to its empty line. `None` if the peer closes first.
    pub(crate) async fn head(&mut self) -> Option<Head> {
        loop {
            let end = self.rest.windows(4).position(|bytes| bytes == b"\r\n\r\n");
            if let Some(end) = end {
                let head = self.rest.split_to(end + 4);
                return Some(Head::parse(&head));
            }
            self.more().await.then_some(())?;
        }
    }

    /// Reads a whole message of which `head` is read, and its trailers. `None` if it breaks.
    pub(crate) async fn body(&mut self, head: &Head) -> Option<(Bytes, HeaderMap)> {
        if head.is_chunked() {
            return self.chunks().await;
        }
        let length = head.headers.get("content-length").map_or(0, |length| {
            length.to_str().expect("text").parse().expect("a length is a number")
        });
        Some((self.bytes(length).await?, HeaderMap::new()))
    }

    /// Reads a whole request and notes it. `None` if the peer closes first.
    pub(crate) async fn request(&mut self) -> Option<Seen> {
        let head = self.head().await?;
        self.rest_of(head).await
    }

    /// The same where the head is read.
    pub(crate) async fn rest_of(&mut self, head: Head) -> Option<Seen> {
        let (body, trailers) = self.body(&head).await?;
        let mut words = head.first.split(' ');
        let mut word = || words.next().expect("a request line has three words");
        let method = word().parse().expect("a method");
        let uri = word().parse().expect("a target");
        let seen = Seen { method, uri, headers: head.headers, body, trailers };
        self.notes.note(seen.clone());
        Some(seen)
    }

    /// How many requests the stub has read on all its connections.
    pub(crate) fn requests(&self) -> usize {
        self.notes.requests()
    }

    /// Reads this many bytes of whatever comes. `None` if the peer closes first.
    pub(crate) async fn bytes(&mut self, count: usize) -> Option<Bytes> {
        while self.rest.len() < count {
            self.more().await.then_some(())?;
        }
        Some(self.rest.split_to(count).freeze())
    }

    /// Reads until the peer closes or resets.
    pub(crate) async fn drain(mut self) -> Bytes {
        while self.more().await {}
        self.rest.freeze()
    }

    /// Waits until the peer has gone, whatever it sends before.
    pub(crate) async fn gone(&mut self) {
        while self.more().await {
            self.rest.clear();
        }
    }

    /// Keeps the connection as it is and reads no more.
    pub(crate) async fn stays(self) {
        std::future::pending().await
    }

    /// Closes so that the peer gets a reset, and not an end.
    pub(crate) fn reset(self) {
        self.stream.set_zero_linger().expect("it is a TCP stream");
    }

    /// Says that nothing more comes, and goes on reading.
    pub(crate) async fn half_close(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    async fn chunks(&mut self) -> Option<(Bytes, HeaderMap)> {
        let mut data = BytesMut::new();
        loop {
            let size = self.line().await?;
            let size = size.split(';').next().expect("split has a first part");
            let size = usize::from_str_radix(size, 16).expect("a size is hexadecimal");
            if size == 0 {
                break;
            }
            data.extend_from_slice(&self.bytes(size).await?);
            self.bytes(2).await?;
        }
        let mut trailers = HeaderMap::new();
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Some((data.freeze(), trailers));
            }
            append(&mut trailers, &line);
        }
    }

    /// Reads a line without its end.
    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|bytes| bytes == b"\r\n") {
                let line = self.rest.split_to(end);
                self.rest.advance(2);
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            self.more().await.then_some(())?;
        }
    }

    async fn more(&mut self) -> bool {
        self.stream.read_buf(&mut self.rest).await.is_ok_and(|read| read > 0)
    }
}

impl Head {
    fn parse(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n").filter(|line| !line.is_empty());
        let first = lines.next().expect("a head has a first line").to_owned();
        let lines: Vec<_> = lines.map(str::to_owned).collect();
        let mut headers = HeaderMap::new();
        lines.iter().for_each(|line| append(&mut headers, line));
        Self { first, headers, lines }
    }

    pub(crate) fn status(&self) -> u16 {
        let word = self.first.split(' ').nth(1).expect("a status line has a status");
        word.parse().expect("a status is a number")
    }

    pub(crate) fn is_chunked(&self) -> bool {
        self.headers.get("transfer-encoding").is_some_and(|value| value == "chunked")
    }
}

fn append(headers: &mut HeaderMap, line: &str) {
    let (name, value) = line.split_once(':').expect("a header has a colon");
    let name: HeaderName = name.parse().expect("a name");
    headers.append(name, HeaderValue::from_str(value.trim()).expect("a value"));
}
