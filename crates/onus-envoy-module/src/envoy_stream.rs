//! A stream as Envoy's callbacks show it.

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::time::SystemTime;

use onus_envoy::{Block, Clock, Shared, Stream, Timestamp};

use crate::abi::{Buffer, Callbacks, EnvoyFilter, HeaderLine, attribute};
use crate::chance::Chance;

/// One stream during one hook.
pub(crate) struct EnvoyStream {
    callbacks: &'static Callbacks,
    filter: EnvoyFilter,
}

/// The key in Envoy's filter state, which a stream shares with its attempts.
const CALL: &[u8] = b"onus.call";

/// Most blocks have fewer lines, and need no allocation to be read.
const FEW: usize = 64;

impl EnvoyStream {
    /// The stream of `filter`.
    ///
    /// # Safety
    ///
    /// Envoy must have handed `filter` to the hook that is running, and no callback that changes
    /// headers may be called by others while this exists.
    pub(crate) const unsafe fn new(callbacks: &'static Callbacks, filter: EnvoyFilter) -> Self {
        Self { callbacks, filter }
    }

    fn number(&self, attribute: u32) -> Option<u64> {
        let get = self.callbacks.get_number.filter(|_| self.callbacks.tells_attempts)?;
        let mut value = 0;
        // SAFETY: the filter is that of the running hook, and `value` outlives the call.
        unsafe { get(self.filter, attribute, &raw mut value) }.then_some(value)
    }

    fn text(&self, attribute: u32) -> Option<&[u8]> {
        let get = self.callbacks.get_text?;
        let mut value = Buffer::EMPTY;
        // SAFETY: the filter is that of the running hook, and `value` outlives the call.
        let found = unsafe { get(self.filter, attribute, &raw mut value) };
        // SAFETY: Envoy keeps the bytes until the hook ends, and changes none while this is borrowed.
        found.then(|| unsafe { value.bytes() })
    }
}

impl Stream for EnvoyStream {
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8])) {
        let block = number_of(block);
        // SAFETY: the filter is that of the running hook.
        let len = unsafe { (self.callbacks.get_headers_size)(self.filter, block) };
        let mut few = [const { MaybeUninit::<HeaderLine>::uninit() }; FEW];
        let mut many;
        let lines = match few.get_mut(..len) {
            Some(few) => few,
            None => {
                many = vec![MaybeUninit::uninit(); len];
                many.as_mut_slice()
            }
        };
        // SAFETY: there is room for as many lines as Envoy has said there are.
        let read =
            unsafe { (self.callbacks.get_headers)(self.filter, block, lines.as_mut_ptr().cast()) };
        if !read {
            return;
        }
        for line in lines {
            // SAFETY: Envoy has written every line.
            let line = unsafe { line.assume_init() };
            // SAFETY: Envoy keeps the bytes until the hook ends or a setter is called; `each` takes
            // copies.
            let name = unsafe { line.name.bytes() };
            // SAFETY: as above.
            let value = unsafe { line.value.bytes() };
            each(name, value);
        }
    }

    fn add(&mut self, block: Block, name: &str, value: &[u8]) {
        let (name, value) = (Buffer::of(name.as_bytes()), Buffer::of(value));
        // SAFETY: the filter is that of the running hook; Envoy copies the bytes.
        unsafe { (self.callbacks.add_header)(self.filter, number_of(block), name, value) };
    }

    fn set(&mut self, block: Block, name: &str, value: &[u8]) {
        let (name, value) = (Buffer::of(name.as_bytes()), Buffer::of(value));
        // SAFETY: the filter is that of the running hook; Envoy copies the bytes.
        unsafe { (self.callbacks.set_header)(self.filter, number_of(block), name, value) };
    }

    fn remove(&mut self, block: Block, name: &str) {
        let name = Buffer::of(name.as_bytes());
        // SAFETY: as for `set`; no value means that the lines go.
        unsafe { (self.callbacks.set_header)(self.filter, number_of(block), name, Buffer::EMPTY) };
    }

    fn cluster(&self) -> Cow<'_, str> {
        let mut name = Buffer::EMPTY;
        // SAFETY: the filter is that of the running hook, and `name` outlives the call.
        if !unsafe { (self.callbacks.get_cluster_name)(self.filter, &raw mut name) } {
            return Cow::default();
        }
        // SAFETY: Envoy keeps the bytes until the hook ends, and changes none while this is borrowed.
        String::from_utf8_lossy(unsafe { name.bytes() })
    }

    fn route(&self) -> Cow<'_, str> {
        self.text(attribute::ROUTE_NAME).map(String::from_utf8_lossy).unwrap_or_default()
    }

    fn attempts(&self) -> Option<u32> {
        let attempts = self.number(attribute::ATTEMPT_COUNT)?;
        Some(u32::try_from(attempts).unwrap_or(u32::MAX))
    }

    fn is_reply(&self) -> Option<bool> {
        if !self.callbacks.tells_attempts {
            return None;
        }
        self.text(attribute::RESPONSE_CODE_DETAILS).map(|details| details == b"via_upstream")
    }

    fn response_flags(&self) -> Option<u64> {
        self.number(attribute::RESPONSE_FLAGS)
    }

    fn leave(&mut self, number: u64) {
        if let Some(leave) = self.callbacks.leave_bytes {
            let value = number.to_le_bytes();
            // SAFETY: the filter is that of the running hook; Envoy copies the bytes.
            unsafe { leave(self.filter, Buffer::of(CALL), Buffer::of(&value)) };
        }
    }

    fn left(&self) -> Option<u64> {
        let get = self.callbacks.get_bytes?;
        let mut value = Buffer::EMPTY;
        // SAFETY: the filter is that of the running hook, and `value` outlives the call.
        let found = unsafe { get(self.filter, Buffer::of(CALL), &raw mut value) };
        // SAFETY: Envoy keeps the bytes until the hook ends or a setter is called.
        let bytes = unsafe { value.bytes() };
        found.then_some(bytes)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn refuse(&mut self, why: &str) -> bool {
        const UNAVAILABLE: u32 = 503;
        let Some(send) = self.callbacks.send_response else { return false };
        let (lines, why) = (std::ptr::null(), Buffer::of(why.as_bytes()));
        // SAFETY: the filter is that of the running hook, there are no lines, and Envoy copies the
        // bytes.
        unsafe { send(self.filter, UNAVAILABLE, lines, 0, why, why) };
        true
    }

    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}

impl Clock for EnvoyStream {
    fn now(&self) -> Timestamp {
        Chance.now()
    }

    fn wall(&self) -> SystemTime {
        Chance.wall()
    }

    fn bits(&self) -> u64 {
        Chance.bits()
    }
}

/// Numbers of `envoy_dynamic_module_type_http_header_type`.
const fn number_of(block: Block) -> u32 {
    match block {
        Block::Request => 0,
        Block::Response => 2,
        Block::Trailers => 3,
    }
}
