//! Chains of services, and the requests that each application has to handle.

mod budgets;
mod claims;
mod faults;
mod operating;
mod scraped;
mod storms;
mod wasm;
