//! The calls of a worker, for the filters of their attempts to find.
//!
//! Envoy runs a call's filters and those of its attempts on one worker, but tells none of them of
//! the others. A header that never leaves Envoy does.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::calling::Calling;

/// The header; the filter of an attempt takes it out.
static HEADER: HeaderName = HeaderName::from_static("onus-call");

/// The most calls of a worker whose attempts are watched; those of further ones are not.
const CALLS_MAX: usize = 65_536;

thread_local! {
    static CALLS: RefCell<HashMap<u64, Weak<RefCell<Calling>>>> = RefCell::default();
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// A call that the filters of its attempts may find, as long as this is kept.
pub(crate) struct Announced(u64);

/// Lets the filters of its attempts find the call.
pub(crate) fn announce(
    calling: &Rc<RefCell<Calling>>,
    headers: &mut HeaderMap,
) -> Option<Announced> {
    let id = NEXT.get();
    NEXT.set(id.wrapping_add(1));
    CALLS.with_borrow_mut(|calls| {
        if calls.len() >= CALLS_MAX {
            return None;
        }
        calls.insert(id, Rc::downgrade(calling));
        write(id, headers);
        Some(Announced(id))
    })
}

/// The call that an attempt with these headers is of; the header is taken out.
pub(crate) fn find(headers: &mut HeaderMap) -> Option<(u64, Rc<RefCell<Calling>>)> {
    let id = headers.remove(&HEADER)?.to_str().ok()?.parse().ok()?;
    let calling = CALLS.with_borrow(|calls| calls.get(&id)?.upgrade())?;
    Some((id, calling))
}

/// Takes the header out where no filter of attempts was there to do so.
pub(crate) fn clean(headers: &mut HeaderMap) {
    headers.remove(&HEADER);
}

/// Puts the header back, for the next attempt: Envoy sends it the same head.
pub(crate) fn write(id: u64, headers: &mut HeaderMap) {
    headers.insert(&HEADER, HeaderValue::from(id));
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
