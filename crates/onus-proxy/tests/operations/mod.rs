//! What an operator does with a proxy, and what keeps it whole.

pub(crate) mod admin;
mod drain;
mod limits;
mod probes;
mod reload;
mod tail;
mod tls;
