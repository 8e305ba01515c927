//! What was counted in each minute, for edges on which something went wrong.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use onus_api::EdgeCounts;

/// A minute of an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct WindowKey {
    /// Since 1970.
    pub(crate) minute: u32,
    /// The number of the edge.
    pub(crate) edge: u32,
}

impl WindowKey {
    pub(crate) fn to_u64(self) -> u64 {
        u64::from(self.minute) << 32 | u64::from(self.edge)
    }

    pub(crate) fn of_u64(key: u64) -> Self {
        Self { minute: (key >> 32) as u32, edge: key as u32 }
    }
}

/// Minutes that are not on disk yet.
pub(crate) type Windows = HashMap<WindowKey, EdgeCounts, RandomState>;

/// Whether a minute is worth keeping.
pub(crate) fn is_trouble(counts: &EdgeCounts) -> bool {
    counts.calls_failed > 0 || counts.retries > 0 || counts.suppressed > 0 || counts.failures() > 0
}
