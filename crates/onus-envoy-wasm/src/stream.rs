//! The stream of the running hook, as Envoy shows it to a plugin.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::time::{Duration, SystemTime};

use onus_envoy::{Block, Clock, Shared, Stream, Timestamp};

use crate::abi::{self, Map};
use crate::routes::{Request, Routes};
use crate::shared_data::SharedData;

/// The stream of the running hook.
pub(crate) struct PluginStream<'a> {
    routes: &'a Routes,
    /// What was seen of the request in this hook.
    request: Cell<Request>,
    /// A hook takes no time worth asking Envoy for twice.
    now: OnceCell<Timestamp>,
}

impl<'a> PluginStream<'a> {
    /// The stream on a listener with these routes.
    pub(crate) fn on(routes: &'a Routes) -> Self {
        Self { routes, request: Cell::default(), now: OnceCell::new() }
    }
}

impl Stream for PluginStream<'_> {
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8])) {
        let mut request = Request::default();
        abi::each_line(map(block), &mut |name, value| {
            if name.starts_with(b":") {
                request = self.routes.with_line(request, name, value);
            }
            each(name, value);
        });
        self.request.set(request);
    }

    fn add(&mut self, block: Block, name: &str, value: &[u8]) {
        abi::add(map(block), name, value);
    }

    fn set(&mut self, block: Block, name: &str, value: &[u8]) {
        abi::replace(map(block), name, value);
    }

    fn remove(&mut self, block: Block, name: &str) {
        abi::remove(map(block), name);
    }

    fn cluster(&self) -> Cow<'_, str> {
        property_text("xds\0cluster_name").unwrap_or_default().into()
    }

    fn route(&self) -> Cow<'_, str> {
        let ask = || property_text("xds\0route_name").unwrap_or_default();
        self.routes.name(self.request.get(), ask).into()
    }

    fn attempts(&self) -> Option<u32> {
        let attempts = property_number("upstream\0request_attempt_count")?;
        Some(u32::try_from(attempts).unwrap_or(u32::MAX))
    }

    fn is_reply(&self) -> Option<bool> {
        abi::property("response\0code_details", |details| details == b"via_upstream")
    }

    fn response_flags(&self) -> Option<u64> {
        property_number("response\0flags")
    }

    // A plugin is no filter of attempts.
    fn leave(&mut self, _: u64) {}

    fn left(&self) -> Option<u64> {
        None
    }

    fn refuse(&mut self, _: &str) -> bool {
        false
    }

    fn shared(&self) -> Option<&dyn Shared> {
        Some(&SharedData)
    }
}

impl Clock for PluginStream<'_> {
    fn now(&self) -> Timestamp {
        *self.now.get_or_init(now)
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.now().as_nanos())
    }

    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// The time since 1970: the one clock that all workers share.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_nanos(abi::current_time())
}

/// On which side of the application the listener of the running hook is, as Envoy's configuration
/// says: 1 before it, 2 behind it.
pub(crate) fn listener_direction() -> Option<u64> {
    property_number("xds\0listener_direction")
}

/// A property that is text; `None` where Envoy does not know it.
pub(crate) fn property_text(path: &str) -> Option<String> {
    abi::property(path, |text| String::from_utf8(text.to_vec()).ok()).flatten()
}

/// A property that is a number; `None` where Envoy does not know it.
fn property_number(path: &str) -> Option<u64> {
    let number = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    abi::property(path, number).flatten()
}

const fn map(block: Block) -> Map {
    match block {
        Block::Request => Map::RequestHeaders,
        Block::Response => Map::ResponseHeaders,
        Block::Trailers => Map::ResponseTrailers,
    }
}
