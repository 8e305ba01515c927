//! The table of bytes that workers share, as a test plays it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use onus_envoy::{Shared, Timestamp};

/// The table, which all workers see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    bytes: Rc<RefCell<BTreeMap<String, Version>>>,
    clock: Rc<Cell<u64>>,
    numbers: Rc<Cell<u16>>,
    untied: Rc<Cell<u64>>,
}

/// What stands under a key, and the number of its version.
type Version = (Vec<u8>, u32);

impl Table {
    /// The time that all workers share: each look is later than the last one.
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.set(self.clock.get() + 1);
        Timestamp::from_nanos(self.clock.get())
    }

    /// How many keys there are, and how many bytes under them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let bytes = self.bytes.borrow();
        (bytes.len(), bytes.values().map(|(value, _)| value.len()).sum())
    }

    /// How often something was put into it.
    pub(crate) fn writes(&self) -> u32 {
        self.bytes.borrow().values().map(|(_, version)| version).sum()
    }
}

impl Shared for Table {
    fn show(&self, key: &str, show: &mut dyn FnMut(&[u8], u32)) {
        if let Some((value, version)) = self.bytes.borrow().get(key) {
            show(value, *version);
        }
    }

    fn set(&self, key: &str, value: &[u8], version: u32) -> bool {
        let mut bytes = self.bytes.borrow_mut();
        let is = bytes.get(key).map_or(0, |(_, version)| *version);
        if version != 0 && version != is {
            return false;
        }
        bytes.insert(key.to_owned(), (value.to_vec(), is + 1));
        true
    }

    fn note_untied(&self) {
        self.untied.set(self.untied.get() + 1);
    }

    fn untied(&self) -> u64 {
        self.untied.get()
    }

    fn next_number(&self) -> u16 {
        self.numbers.replace(self.numbers.get() + 1)
    }
}
