//! The calls of a worker, for the filters of their attempts to find.
//!
//! Envoy runs a call's filters and those of its attempts on one worker, but tells none of them of
//! the others. A number that is left with the stream does.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use foldhash::fast::FixedState;

use crate::calling::Calling;

/// The most calls of a worker whose attempts are watched; those of further ones are not.
const CALLS_MAX: usize = 65_536;

thread_local! {
    static CALLS: RefCell<Calls> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// The numbers are this worker's own, so nobody can look for those that share a hash.
type Calls = HashMap<u64, Weak<RefCell<Calling>>, FixedState>;

/// A call that the filters of its attempts may find, as long as this is kept.
pub(crate) struct Announced(u64);

impl Announced {
    /// What finds the call.
    pub(crate) fn number(&self) -> u64 {
        self.0
    }
}

/// Lets the filters of its attempts find the call.
pub(crate) fn announce(calling: &Rc<RefCell<Calling>>) -> Option<Announced> {
    let number = NEXT.get();
    NEXT.set(number.wrapping_add(1));
    CALLS.with_borrow_mut(|calls| {
        if calls.len() >= CALLS_MAX {
            return None;
        }
        calls.insert(number, Rc::downgrade(calling));
        Some(Announced(number))
    })
}

/// The call with this number.
pub(crate) fn find(number: u64) -> Option<Rc<RefCell<Calling>>> {
    CALLS.with_borrow(|calls| calls.get(&number)?.upgrade())
}

impl Drop for Announced {
    fn drop(&mut self) {
        // A thread that ends has no calls left.
        let _ = CALLS.try_with(|calls| {
            if let Ok(mut calls) = calls.try_borrow_mut() {
                calls.remove(&self.0);
            }
        });
    }
}
