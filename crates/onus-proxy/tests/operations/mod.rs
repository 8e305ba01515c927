//! What an operator does with a proxy, and what keeps it whole.

mod admin;
mod drain;
mod limits;
mod reload;
mod tail;
mod tls;
