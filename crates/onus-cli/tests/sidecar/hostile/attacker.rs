//! The calling end of an HTTP/2 connection that keeps no rule.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// A client whose frames are made by hand.
pub(super) struct Attacker {
    write: OwnedWriteHalf,
    ends: JoinHandle<Option<u32>>,
}

impl Attacker {
    pub(super) async fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("somebody listens");
        stream.set_nodelay(true).expect("it is a TCP stream");
        let (mut read, mut write) = stream.into_split();
        write.write_all(PREFACE).await.expect("it was accepted");
        write.write_all(&frame(SETTINGS, 0, 0, &[])).await.expect("it was accepted");
        // What is said meanwhile is read, so that the other end is never short of room.
        let ends = tokio::spawn(async move {
            let mut reason = None;
            let mut head = [0; 9];
            while read.read_exact(&mut head).await.is_ok() {
                let [a, b, c, kind, ..] = head;
                let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
                if read.read_exact(&mut payload).await.is_err() {
                    break;
                }
                if kind == GOAWAY {
                    reason = payload[4..8].try_into().ok().map(u32::from_be_bytes);
                }
            }
            reason
        });
        Self { write, ends }
    }

    /// Sends bytes; false where the other end takes no more.
    pub(super) async fn send(&mut self, bytes: &[u8]) -> bool {
        !self.ends.is_finished() && self.write.write_all(bytes).await.is_ok()
    }

    /// Waits until the other end closes; the reason that it gives.
    pub(super) async fn ended(self) -> Option<u32> {
        let ended = timeout(TOO_LONG, self.ends).await.expect("the connection is closed");
        ended.expect("nobody panics here")
    }
}

/// A frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).expect("it is short").to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a request on a stream: `GET http://peer/`, or a `POST` where it does not end there.
pub(super) fn request(stream: u32, flags: u8) -> Vec<u8> {
    let method = if flags & END_STREAM != 0 { 0x82 } else { 0x83 };
    frame(HEADERS, flags, stream, &[&[method, 0x86, 0x84, 0x41, 4], &b"peer"[..]].concat())
}

/// The stream of a number from 0.
pub(super) fn stream(number: u32) -> u32 {
    2 * number + 1
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RST_STREAM: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
pub(super) const CONTINUATION: u8 = 9;

pub(super) const END_STREAM: u8 = 1;
pub(super) const END_HEADERS: u8 = 4;

const TOO_LONG: Duration = Duration::from_secs(30);
