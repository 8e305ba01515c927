//! The plugins and streams of this worker, by the numbers that Envoy gives them.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;

use crate::plugin::{Plugin, StreamContext};

thread_local! {
    static PLUGINS: RefCell<HashMap<u32, Rc<Plugin>, Numbers>> = RefCell::default();
    static STREAMS: RefCell<HashMap<u32, StreamContext, Numbers>> = RefCell::default();
}

/// Envoy counts its numbers up, so nobody can look for those that share a hash.
type Numbers = FixedState;

/// A plugin has its configuration, the first or a new one.
pub(crate) fn configured(id: u32, plugin: Plugin) {
    PLUGINS.with_borrow_mut(|plugins| plugins.insert(id, Rc::new(plugin)));
}

/// A moment has passed for a plugin.
pub(crate) fn tick(id: u32) {
    let plugin = PLUGINS.with_borrow(|plugins| plugins.get(&id).cloned());
    plugin.iter().for_each(|plugin| plugin.on_tick());
}

/// A stream of the plugin `parent` begins. There are as many as Envoy has.
pub(crate) fn stream_begins(id: u32, parent: u32) {
    if let Some(plugin) = PLUGINS.with_borrow(|plugins| plugins.get(&parent).cloned()) {
        let stream = StreamContext::new(plugin);
        STREAMS.with_borrow_mut(|streams| streams.insert(id, stream));
    }
}

/// Runs a hook of a stream.
pub(crate) fn with(id: u32, run: impl FnOnce(&mut StreamContext)) {
    STREAMS.with_borrow_mut(|streams| streams.get_mut(&id).map(run));
}

/// A plugin or a stream is over: the stream.
pub(crate) fn remove(id: u32) -> Option<StreamContext> {
    let stream = STREAMS.with_borrow_mut(|streams| streams.remove(&id));
    if stream.is_none() {
        PLUGINS.with_borrow_mut(|plugins| plugins.remove(&id));
    }
    stream
}
