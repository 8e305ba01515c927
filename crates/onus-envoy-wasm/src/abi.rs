//! The part of Envoy's plugin interface (proxy-wasm 0.2.1) that is used: its calls, made safe.
//!
//! Envoy puts what it returns where the plugin says. Each call returns one value, and a plugin runs
//! on one thread, so there is one place for all of them: nothing is allocated for a call.

use std::cell::{Cell, RefCell};

use crate::lines;

/// A header block, as its number in `proxy_map_type_t`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Map {
    RequestHeaders = 0,
    ResponseHeaders = 2,
    ResponseTrailers = 3,
}

/// A level of Envoy's log, as its number in `proxy_log_level_t`.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Level {
    Trace = 0,
    Debug = 1,
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// The number of `proxy_metric_type_t` for a counter.
const COUNTER: u32 = 0;
/// The number of `proxy_buffer_type_t` for the configuration of a plugin.
const PLUGIN_CONFIGURATION: u32 = 7;
/// The answer of a call that worked.
const OK: u32 = 0;

/// The functions of Envoy, as the interface describes them: pairs of a pointer and a length are
/// bytes, `*mut *mut u8` and `*mut usize` say where Envoy has put its answer.
mod host {
    #[link(wasm_import_module = "env")]
    unsafe extern "C" {
        pub(super) fn proxy_log(level: u32, text: *const u8, len: usize) -> u32;
        pub(super) fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
        pub(super) fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
        pub(super) fn proxy_get_buffer_bytes(
            buffer: u32,
            start: usize,
            max: usize,
            data: *mut *mut u8,
            len: *mut usize,
        ) -> u32;
        pub(super) fn proxy_get_property(
            path: *const u8,
            path_len: usize,
            data: *mut *mut u8,
            len: *mut usize,
        ) -> u32;
        pub(super) fn proxy_get_header_map_pairs(
            map: u32,
            data: *mut *mut u8,
            len: *mut usize,
        ) -> u32;
        pub(super) fn proxy_add_header_map_value(
            map: u32,
            name: *const u8,
            name_len: usize,
            value: *const u8,
            value_len: usize,
        ) -> u32;
        pub(super) fn proxy_replace_header_map_value(
            map: u32,
            name: *const u8,
            name_len: usize,
            value: *const u8,
            value_len: usize,
        ) -> u32;
        pub(super) fn proxy_remove_header_map_value(
            map: u32,
            name: *const u8,
            name_len: usize,
        ) -> u32;
        pub(super) fn proxy_get_shared_data(
            key: *const u8,
            key_len: usize,
            data: *mut *mut u8,
            len: *mut usize,
            version: *mut u32,
        ) -> u32;
        pub(super) fn proxy_set_shared_data(
            key: *const u8,
            key_len: usize,
            value: *const u8,
            value_len: usize,
            version: u32,
        ) -> u32;
        pub(super) fn proxy_define_metric(
            kind: u32,
            name: *const u8,
            name_len: usize,
            id: *mut u32,
        ) -> u32;
        pub(super) fn proxy_increment_metric(id: u32, by: i64) -> u32;
        pub(super) fn proxy_get_metric(id: u32, value: *mut u64) -> u32;
    }
}

thread_local! {
    /// What Envoy returned last. It grows to the greatest value that there was: a header block, whose
    /// size Envoy limits, or a configuration.
    static RETURNED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The version of the interface.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_abi_version_0_2_1() {}

/// Where Envoy is to put the `len` bytes that it returns.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn proxy_on_memory_allocate(len: usize) -> *mut u8 {
    RETURNED.with_borrow_mut(|returned| {
        if returned.len() < len {
            returned.resize(len, 0);
        }
        returned.as_mut_ptr()
    })
}

/// Runs a call that returns bytes, and shows them to `read`, which may not call Envoy; `None` where
/// Envoy has none.
fn returned<T>(
    call: impl FnOnce(*mut *mut u8, *mut usize) -> u32,
    read: impl FnOnce(&[u8]) -> T,
) -> Option<T> {
    let (mut data, mut len) = (std::ptr::null_mut(), 0);
    if call(&raw mut data, &raw mut len) != OK {
        return None;
    }
    // Envoy asks for no place for nothing.
    RETURNED.with_borrow(|returned| returned.get(..len).map(read))
}

/// Writes a line into Envoy's log.
pub(crate) fn log(level: Level, text: &str) {
    // SAFETY: Envoy reads the text during the call.
    unsafe { host::proxy_log(level as u32, text.as_ptr(), text.len()) };
}

/// Nanoseconds since 1970.
pub(crate) fn current_time() -> u64 {
    let mut time = 0;
    // SAFETY: `time` outlives the call.
    unsafe { host::proxy_get_current_time_nanoseconds(&raw mut time) };
    time
}

/// Lets Envoy call the tick of the plugin that is being configured.
pub(crate) fn tick_every(milliseconds: u32) {
    // SAFETY: only a number is handed over.
    unsafe { host::proxy_set_tick_period_milliseconds(milliseconds) };
}

/// The configuration of the plugin that is being configured.
pub(crate) fn plugin_configuration() -> Vec<u8> {
    // SAFETY: what Envoy writes to outlives the call.
    let call = |data, len| unsafe {
        host::proxy_get_buffer_bytes(PLUGIN_CONFIGURATION, 0, usize::MAX, data, len)
    };
    returned(call, <[u8]>::to_vec).unwrap_or_default()
}

/// Shows a property to `read`. The parts of `path` are parted by zeros.
pub(crate) fn property<T>(path: &str, read: impl FnOnce(&[u8]) -> T) -> Option<T> {
    // SAFETY: Envoy reads the path during the call, and what it writes to outlives it.
    let call =
        |data, len| unsafe { host::proxy_get_property(path.as_ptr(), path.len(), data, len) };
    returned(call, read)
}

/// Shows every line of a header block.
pub(crate) fn each_line(map: Map, each: &mut dyn FnMut(&[u8], &[u8])) {
    // SAFETY: what Envoy writes to outlives the call.
    let call = |data, len| unsafe { host::proxy_get_header_map_pairs(map as u32, data, len) };
    returned(call, |block| lines::each(block, each));
}

/// Adds a line to a header block.
pub(crate) fn add(map: Map, name: &str, value: &[u8]) {
    let (map, name_len, value_len) = (map as u32, name.len(), value.len());
    // SAFETY: Envoy reads both during the call. A block that is gone needs no line.
    unsafe {
        host::proxy_add_header_map_value(map, name.as_ptr(), name_len, value.as_ptr(), value_len)
    };
}

/// Puts one line in place of all of that name.
pub(crate) fn replace(map: Map, name: &str, value: &[u8]) {
    let (map, name_len, value_len) = (map as u32, name.len(), value.len());
    // SAFETY: as for `add`.
    unsafe {
        host::proxy_replace_header_map_value(
            map,
            name.as_ptr(),
            name_len,
            value.as_ptr(),
            value_len,
        )
    };
}

/// Takes all lines of that name out.
pub(crate) fn remove(map: Map, name: &str) {
    // SAFETY: as for `add`.
    unsafe { host::proxy_remove_header_map_value(map as u32, name.as_ptr(), name.len()) };
}

/// Shows what stands under `key` in the data that workers share, and the number of its version.
pub(crate) fn shared(key: &str, show: &mut dyn FnMut(&[u8], u32)) {
    let version = Cell::new(0);
    // SAFETY: Envoy reads the key during the call, and what it writes to outlives it.
    let call = |data, len| unsafe {
        host::proxy_get_shared_data(key.as_ptr(), key.len(), data, len, version.as_ptr())
    };
    returned(call, |value| show(value, version.get()));
}

/// Puts `value` there, if what stands there is of this `version` or that is 0; whether it is there.
pub(crate) fn set_shared(key: &str, value: &[u8], version: u32) -> bool {
    let (key_len, value_len) = (key.len(), value.len());
    // SAFETY: Envoy reads both during the call.
    let answer = unsafe {
        host::proxy_set_shared_data(key.as_ptr(), key_len, value.as_ptr(), value_len, version)
    };
    answer == OK
}

/// The number of the counter with this name, which need not be there yet.
pub(crate) fn counter(name: &str) -> Option<u32> {
    let mut id = 0;
    // SAFETY: Envoy reads the name during the call, and `id` outlives it.
    let answer =
        unsafe { host::proxy_define_metric(COUNTER, name.as_ptr(), name.len(), &raw mut id) };
    (answer == OK).then_some(id)
}

/// Adds to a counter.
pub(crate) fn increment(counter: u32, by: u64) {
    // SAFETY: only numbers are handed over.
    unsafe { host::proxy_increment_metric(counter, i64::try_from(by).unwrap_or(i64::MAX)) };
}

/// What a counter has come to.
pub(crate) fn count(counter: u32) -> u64 {
    let mut value = 0;
    // SAFETY: `value` outlives the call.
    unsafe { host::proxy_get_metric(counter, &raw mut value) };
    value
}
