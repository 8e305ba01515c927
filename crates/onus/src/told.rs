//! What functions of the user tell: which procedure, which callee, which kind of error.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// What `tell` tells; `None` if it panics, because a name that cannot be told must not cost the
/// request. The panic hook has reported it by then.
pub(crate) fn told<T>(tell: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(tell)).ok()
}
