//! What every Onus host shares in one process: edges, budgets, counters, correlation.

pub mod classify;
pub mod symbols;
pub mod wire;
