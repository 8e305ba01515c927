//! The stream of the running hook, as Envoy shows it to a plugin.

use std::cell::OnceCell;
use std::time::{Duration, SystemTime};

use onus_envoy::{Block, Clock, Shared, Stream, Timestamp};
use proxy_wasm::hostcalls;
use proxy_wasm::types::MapType;

use crate::shared_data::SharedData;

/// The stream of the running hook.
#[derive(Default)]
pub(crate) struct PluginStream {
    /// A hook takes no time worth asking Envoy for twice.
    now: OnceCell<SystemTime>,
}

impl PluginStream {
    /// On which side of the application the listener is, as Envoy's configuration says: 1 before
    /// it, 2 behind it.
    pub(crate) fn listener_direction(&self) -> Option<u64> {
        property_number(&["xds", "listener_direction"])
    }
}

impl Stream for PluginStream {
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8])) {
        for (name, value) in hostcalls::get_map_bytes(map(block)).unwrap_or_default() {
            each(name.as_bytes(), &value);
        }
    }

    fn add(&mut self, block: Block, name: &str, value: &[u8]) {
        // A block that is gone needs no line.
        let _ = hostcalls::add_map_value_bytes(map(block), name, value);
    }

    fn set(&mut self, block: Block, name: &str, value: &[u8]) {
        // A block that is gone needs no line.
        let _ = hostcalls::set_map_value_bytes(map(block), name, Some(value));
    }

    fn remove(&mut self, block: Block, name: &str) {
        let _ = hostcalls::set_map_value_bytes(map(block), name, None);
    }

    fn cluster(&self) -> String {
        property_text(&["xds", "cluster_name"]).unwrap_or_default()
    }

    fn route(&self) -> String {
        property_text(&["xds", "route_name"]).unwrap_or_default()
    }

    fn attempts(&self) -> Option<u32> {
        let attempts = property_number(&["upstream", "request_attempt_count"])?;
        Some(u32::try_from(attempts).unwrap_or(u32::MAX))
    }

    fn is_reply(&self) -> Option<bool> {
        Some(property_text(&["response", "code_details"])? == "via_upstream")
    }

    fn response_flags(&self) -> Option<u64> {
        property_number(&["response", "flags"])
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

impl Clock for PluginStream {
    fn now(&self) -> Timestamp {
        since_1970(self.wall())
    }

    fn wall(&self) -> SystemTime {
        *self.now.get_or_init(wall)
    }

    fn bits(&self) -> u64 {
        fastrand::u64(..)
    }
}

/// The time since 1970: the one clock that all workers share.
pub(crate) fn now() -> Timestamp {
    since_1970(wall())
}

fn since_1970(wall: SystemTime) -> Timestamp {
    let since = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Timestamp::ZERO.saturating_add(since)
}

fn wall() -> SystemTime {
    hostcalls::get_current_time().unwrap_or(SystemTime::UNIX_EPOCH)
}

/// A property that is text; `None` where Envoy does not know it.
pub(crate) fn property_text(path: &[&str]) -> Option<String> {
    let bytes = hostcalls::get_property(path.to_vec()).ok()??;
    String::from_utf8(bytes).ok()
}

/// A property that is a number; `None` where Envoy does not know it.
fn property_number(path: &[&str]) -> Option<u64> {
    let bytes = hostcalls::get_property(path.to_vec()).ok()??;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

const fn map(block: Block) -> MapType {
    match block {
        Block::Request => MapType::HttpRequestHeaders,
        Block::Response => MapType::HttpResponseHeaders,
        Block::Trailers => MapType::HttpResponseTrailers,
    }
}
