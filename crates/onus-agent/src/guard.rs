//! The guard around each call into the core: a fault there lets the request pass.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs a decision; `None` if it panicked.
///
/// Unwind safety is asserted: the core's states are plain data, and the locks around them ignore
/// poisoning, so what a panic leaves behind can at worst make one decision wrong.
pub(crate) fn guard<T>(decision: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(|| {
        #[cfg(feature = "fault-injection")]
        fault_injection::strike();
        decision()
    }))
    .ok()
}

/// Lets a test break decisions on purpose.
#[cfg(feature = "fault-injection")]
pub mod fault_injection {
    use std::cell::Cell;

    std::thread_local! {
        static BROKEN: Cell<bool> = const { Cell::new(false) };
    }

    /// Makes every decision on this thread panic while `run` runs.
    pub fn with_broken_decisions<T>(run: impl FnOnce() -> T) -> T {
        BROKEN.set(true);
        let result = run();
        BROKEN.set(false);
        result
    }

    /// Makes every decision on this thread panic, or no longer.
    pub fn set_broken(broken: bool) {
        BROKEN.set(broken);
    }

    pub(super) fn strike() {
        assert!(!BROKEN.get(), "a fault injected into a decision");
    }
}
