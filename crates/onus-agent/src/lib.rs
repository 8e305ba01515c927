//! What every Onus host shares in one process: edges, budgets, counters, correlation.

pub mod wire;
