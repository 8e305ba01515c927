//! The processes that are measured: started, watched and ended by their id.

pub(crate) mod child;
pub(crate) mod cpu;
pub(crate) mod usage;
