//! Frames of HTTP/2 that the h2 crate does not send: a GOAWAY that names any stream.
//!
//! Header blocks are not decoded, so a request is told by its data.

use std::collections::BTreeMap;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::notes::Stub;

/// A connection that speaks HTTP/2, at the answering end.
pub(crate) struct Frames {
    stream: TcpStream,
    /// Which connection of the stub this is, from 0.
    pub(crate) number: usize,
    /// Requests whose data has begun, by their streams.
    bodies: BTreeMap<u32, String>,
}

/// A request that has ended.
pub(crate) struct Ended {
    pub(crate) stream: u32,
    pub(crate) body: String,
}

/// A stub that runs `script` on each of its connections, which allow this many streams at once.
pub(crate) async fn frames<F>(
    most: u32,
    script: impl Fn(Frames) -> F + Clone + Send + 'static,
) -> Stub
where
    F: Future<Output = ()> + Send + 'static,
{
    Stub::listen(move |mut stream, number, _| {
        let script = script.clone();
        async move {
            let mut preface = [0; PREFACE.len()];
            if stream.read_exact(&mut preface).await.is_err() {
                return;
            }
            assert_eq!(preface, *PREFACE);
            let mut frames = Frames { stream, number, bodies: BTreeMap::new() };
            let most = most.to_be_bytes();
            frames.send(SETTINGS, 0, 0, &[&MAX_CONCURRENT_STREAMS[..], &most].concat()).await;
            script(frames).await;
        }
    })
    .await
}

impl Frames {
    /// The next request that has ended; `None` if the connection ends first.
    pub(crate) async fn request(&mut self) -> Option<Ended> {
        loop {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head).await.ok()?;
            let [a, b, c, kind, flags, stream @ ..] = head;
            let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
            let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
            self.stream.read_exact(&mut payload).await.ok()?;
            let ends = flags & END_STREAM != 0;
            match kind {
                DATA => {
                    let body = self.bodies.entry(stream).or_default();
                    body.push_str(std::str::from_utf8(&payload).expect("bodies are text"));
                }
                SETTINGS if flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                PING if flags & ACK == 0 => self.send(PING, ACK, 0, &payload).await,
                _ => {}
            }
            if matches!(kind, DATA | HEADERS) && ends {
                let body = self.bodies.remove(&stream).unwrap_or_default();
                return Some(Ended { stream, body });
            }
        }
    }

    /// An answer of status 200 without a body.
    pub(crate) async fn ok(&mut self, stream: u32) {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &[STATUS_200]).await;
    }

    /// No stream above `last` was, or will be, looked at.
    pub(crate) async fn goaway(&mut self, last: u32) {
        self.send(GOAWAY, 0, 0, &[last.to_be_bytes(), NO_ERROR].concat()).await;
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let [_, length @ ..] = u32::try_from(payload.len()).expect("short").to_be_bytes();
        let head = [&length[..], &[kind, flags], &stream.to_be_bytes()].concat();
        let _ = self.stream.write_all(&[&head, payload].concat()).await;
    }
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

const MAX_CONCURRENT_STREAMS: [u8; 2] = [0, 3];
const NO_ERROR: [u8; 4] = [0; 4];

/// `:status: 200` in HPACK's static table.
const STATUS_200: u8 = 0x88;
