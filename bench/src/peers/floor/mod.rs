//! The least that a proxy can cost on this machine, and with this HTTP stack.

pub(crate) mod bare;
pub(crate) mod splice;
