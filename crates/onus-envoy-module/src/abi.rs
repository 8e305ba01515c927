//! The part of Envoy's module interface that is used: types, numbers and callbacks.
//!
//! The callbacks are looked up by name when the library is loaded. What an Envoy does not have
//! degrades a feature, and tests link without Envoy.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

/// Bytes, by pointer and length; whose they are depends on the function.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) ptr: *const u8,
    pub(crate) len: usize,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self { ptr: std::ptr::null(), len: 0 };

    pub(crate) const fn of(bytes: &[u8]) -> Self {
        Self { ptr: bytes.as_ptr(), len: bytes.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    ///
    /// They must stay in place and unchanged for `'a`.
    pub(crate) const unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.ptr.is_null() {
            return &[];
        }
        // SAFETY: not null; the rest is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.ptr, self.len) }
    }
}

/// A line of a header block.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct HeaderLine {
    pub(crate) name: Buffer,
    pub(crate) value: Buffer,
}

/// Envoy's side of a filter, only to be handed back to Envoy.
pub(crate) type EnvoyFilter = *mut c_void;
/// Envoy's side of a filter's configuration.
pub(crate) type EnvoyConfig = *mut c_void;

/// Numbers of `envoy_dynamic_module_type_attribute_id`. They are places in a list, which a test
/// holds against every version of Envoy that is supported.
pub(crate) mod attribute {
    pub(crate) const RESPONSE_CODE_DETAILS: u32 = 16;
    pub(crate) const RESPONSE_FLAGS: u32 = 17;
    pub(crate) const ATTEMPT_COUNT: u32 = 53;
    pub(crate) const ROUTE_NAME: u32 = 61;
}

type Log = unsafe extern "C" fn(level: u32, message: Buffer);
type LogEnabled = unsafe extern "C" fn(level: u32) -> bool;
type GetHeadersSize = unsafe extern "C" fn(EnvoyFilter, block: u32) -> usize;
type GetHeaders = unsafe extern "C" fn(EnvoyFilter, block: u32, lines: *mut HeaderLine) -> bool;
type SetHeader = unsafe extern "C" fn(EnvoyFilter, block: u32, name: Buffer, value: Buffer) -> bool;
type GetClusterName = unsafe extern "C" fn(EnvoyFilter, name: *mut Buffer) -> bool;
type GetNumber = unsafe extern "C" fn(EnvoyFilter, attribute: u32, value: *mut u64) -> bool;
type DefineCounter = unsafe extern "C" fn(
    EnvoyConfig,
    name: Buffer,
    labels: *const Buffer,
    labels_len: usize,
    id: *mut usize,
) -> u32;
type AddToCounter = unsafe extern "C" fn(
    EnvoyFilter,
    id: usize,
    values: *const Buffer,
    values_len: usize,
    count: u64,
) -> u32;
type LeaveBytes = unsafe extern "C" fn(EnvoyFilter, key: Buffer, value: Buffer) -> bool;
type GetBytes = unsafe extern "C" fn(EnvoyFilter, key: Buffer, value: *mut Buffer) -> bool;
type SendResponse = unsafe extern "C" fn(
    EnvoyFilter,
    status: u32,
    lines: *const HeaderLine,
    lines_len: usize,
    body: Buffer,
    details: Buffer,
);
type GetText = unsafe extern "C" fn(EnvoyFilter, attribute: u32, value: *mut Buffer) -> bool;

/// What Envoy lets a module call. What is not an `Option` a module of ours cannot do without.
pub(crate) struct Callbacks {
    pub(crate) get_headers_size: GetHeadersSize,
    pub(crate) get_headers: GetHeaders,
    pub(crate) add_header: SetHeader,
    pub(crate) set_header: SetHeader,
    /// There from 1.38 on, the first version whose interface stays.
    pub(crate) get_cluster_name: GetClusterName,
    /// Bytes that the filters of a stream and of its attempts share.
    pub(crate) leave_bytes: Option<LeaveBytes>,
    pub(crate) get_bytes: Option<GetBytes>,
    pub(crate) send_response: Option<SendResponse>,
    pub(crate) log: Option<Log>,
    pub(crate) log_enabled: Option<LogEnabled>,
    pub(crate) get_number: Option<GetNumber>,
    pub(crate) get_text: Option<GetText>,
    pub(crate) define_counter: Option<DefineCounter>,
    pub(crate) add_to_counter: Option<AddToCounter>,
    /// Whether attempts, response flags and code details can be asked for, from 1.39 on; earlier
    /// versions log an error each time.
    pub(crate) tells_attempts: bool,
    /// Whether the version of the interface is that of 1.40.
    pub(crate) is_1_40: bool,
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Looks a function up among all that the process has loaded.
///
/// # Safety
///
/// `F` must be the type of the function.
unsafe fn find<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: a null handle stands for the whole process, and the name ends with a zero.
    let found = unsafe { dlsym(std::ptr::null_mut(), name.as_ptr()) };
    if found.is_null() {
        return None;
    }
    // SAFETY: it is a function of type `F` by the caller's promise, as large as its address.
    Some(unsafe { std::mem::transmute_copy::<*mut c_void, F>(&found) })
}

/// Whether Envoy has this function.
fn has(name: &CStr) -> bool {
    // SAFETY: the function is not called.
    unsafe { find::<*const c_void>(name) }.is_some()
}

impl Callbacks {
    /// The callbacks of this process; `None` where it is no Envoy that is supported.
    pub(crate) fn get() -> Option<&'static Self> {
        Self::find().ok()
    }

    /// The callbacks of this process, or the name of one that is needed and not there.
    pub(crate) fn find() -> Result<&'static Self, &'static str> {
        static CALLBACKS: OnceLock<Result<Callbacks, &'static str>> = OnceLock::new();
        CALLBACKS.get_or_init(Self::load).as_ref().map_err(|name| *name)
    }

    fn load() -> Result<Self, &'static str> {
        macro_rules! callback {
            ($name:literal) => {
                // SAFETY: the type at the place that the value goes to is that of Envoy's function.
                unsafe {
                    find(CStr::from_bytes_with_nul_unchecked(
                        concat!("envoy_dynamic_module_callback_", $name, "\0").as_bytes(),
                    ))
                }
            };
        }
        macro_rules! needed {
            ($name:literal) => {
                callback!($name).ok_or(concat!("envoy_dynamic_module_callback_", $name))?
            };
        }
        Ok(Self {
            get_headers_size: needed!("http_get_headers_size"),
            get_headers: needed!("http_get_headers"),
            add_header: needed!("http_add_header"),
            set_header: needed!("http_set_header"),
            leave_bytes: callback!("http_set_filter_state_bytes"),
            get_bytes: callback!("http_get_filter_state_bytes"),
            send_response: callback!("http_send_response"),
            log: callback!("log"),
            log_enabled: callback!("log_enabled"),
            get_cluster_name: needed!("http_get_cluster_name"),
            get_number: callback!("http_filter_get_attribute_int"),
            get_text: callback!("http_filter_get_attribute_string"),
            define_counter: callback!("http_filter_config_define_counter"),
            add_to_counter: callback!("http_filter_increment_counter"),
            tells_attempts: has(c"envoy_dynamic_module_callback_get_log_level"),
            is_1_40: has(c"envoy_dynamic_module_callback_get_runtime_bool"),
        })
    }

    /// What works less well for want of callbacks, as the end of a sentence about this Envoy.
    pub(crate) fn lacks(&self) -> impl Iterator<Item = &'static str> {
        let attempts = self.tells_attempts && self.get_number.is_some();
        let state = self.leave_bytes.is_some() && self.get_bytes.is_some();
        let counters = self.define_counter.is_some() && self.add_to_counter.is_some();
        [
            (
                attempts,
                "does not tell filters of its attempts: set include_request_attempt_count on \
                 virtual hosts, so that callees do, or use 1.39 or later",
            ),
            (state, "keeps no state for filters of attempts: `retry` of a callee limits nothing"),
            (
                self.send_response.is_some(),
                "lets no filter answer: an attempt after silence is not refused",
            ),
            (
                self.get_text.is_some(),
                "does not tell filters of its routes: all calls of an HTTP method to a callee share \
                 one edge, and what Envoy answers itself passes for the callee's",
            ),
            (counters, "takes no counters from filters: its statistics have none of Onus"),
        ]
        .into_iter()
        .filter_map(|(has, lack)| (!has).then_some(lack))
    }
}
