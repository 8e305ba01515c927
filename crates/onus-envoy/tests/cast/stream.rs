//! A stream that a test plays.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue};
use onus_envoy::{Block, Clock, Shared, Stream, Timestamp};

use super::table::Table;

/// A stream as Envoy would show it. Pseudo headers stand beside the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Played {
    pub(crate) request: HeaderMap,
    pub(crate) response: HeaderMap,
    pub(crate) trailers: HeaderMap,
    pub(crate) status: u16,
    pub(crate) method: &'static str,
    pub(crate) path: String,
    pub(crate) cluster: String,
    pub(crate) attempts: Option<u32>,
    pub(crate) is_reply: Option<bool>,
    pub(crate) flags: Option<u64>,
    pub(crate) now: Timestamp,
    pub(crate) bits: Cell<u64>,
    /// What was left for the filters of attempts.
    pub(crate) left: Option<u64>,
    /// Why an attempt was refused.
    pub(crate) refused: Option<String>,
    /// What workers share, where they share no memory.
    pub(crate) table: Option<Table>,
    /// Blocks that were written to, by how often.
    pub(crate) writes: BTreeMap<&'static str, u32>,
}

impl Played {
    /// A request with these headers, `GET /` unless changed.
    pub(crate) fn request(request: HeaderMap) -> Self {
        // An Envoy that tells all there is.
        let (attempts, is_reply, flags) = (Some(1), Some(true), Some(0));
        let (method, path, status) = ("GET", "/".to_owned(), 200);
        Self { request, method, path, status, attempts, is_reply, flags, ..Self::default() }
    }

    fn block(&mut self, block: Block) -> &mut HeaderMap {
        match block {
            Block::Request => &mut self.request,
            Block::Response => &mut self.response,
            Block::Trailers => &mut self.trailers,
        }
    }

    fn count(&mut self, block: Block) {
        let name = match block {
            Block::Request => "request",
            Block::Response => "response",
            Block::Trailers => "trailers",
        };
        *self.writes.entry(name).or_default() += 1;
    }
}

impl Stream for Played {
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8])) {
        let (lines, pseudo) = match block {
            Block::Request => {
                each(b":path", self.path.as_bytes());
                (&self.request, (":method", self.method.to_owned()))
            }
            Block::Response => (&self.response, (":status", self.status.to_string())),
            Block::Trailers => (&self.trailers, ("x-nothing", String::new())),
        };
        each(pseudo.0.as_bytes(), pseudo.1.as_bytes());
        for (name, value) in lines {
            each(name.as_str().as_bytes(), value.as_bytes());
        }
    }

    fn add(&mut self, block: Block, name: &str, value: &[u8]) {
        self.count(block);
        let name: HeaderName = name.parse().unwrap();
        let block = self.block(block);
        assert!(!block.contains_key(&name), "{name} is there already");
        block.insert(name, HeaderValue::from_bytes(value).unwrap());
    }

    fn set(&mut self, block: Block, name: &str, value: &[u8]) {
        self.count(block);
        let name: HeaderName = name.parse().unwrap();
        self.block(block).insert(name, HeaderValue::from_bytes(value).unwrap());
    }

    fn remove(&mut self, block: Block, name: &str) {
        self.count(block);
        self.block(block).remove(name);
    }

    fn cluster(&self) -> Cow<'_, str> {
        self.cluster.as_str().into()
    }

    fn route(&self) -> Cow<'_, str> {
        Cow::default()
    }

    fn attempts(&self) -> Option<u32> {
        self.attempts
    }

    fn is_reply(&self) -> Option<bool> {
        self.is_reply
    }

    fn response_flags(&self) -> Option<u64> {
        self.flags
    }

    fn leave(&mut self, number: u64) {
        assert_eq!(self.left, None, "Envoy takes it once");
        self.left = Some(number);
    }

    fn left(&self) -> Option<u64> {
        self.left
    }

    fn refuse(&mut self, why: &str) -> bool {
        self.refused = Some(why.to_owned());
        true
    }

    fn shared(&self) -> Option<&dyn Shared> {
        self.table.as_ref().map(|table| table as &dyn Shared)
    }
}

impl Clock for Played {
    fn now(&self) -> Timestamp {
        self.now
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn bits(&self) -> u64 {
        // Without a word of the test: no gate in the way, no probe, and no tick of a minute.
        match self.bits.get() {
            0 => 0xffff_0001,
            bits => bits,
        }
    }
}
