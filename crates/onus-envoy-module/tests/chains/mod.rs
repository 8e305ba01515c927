//! Chains of services, and the requests that each application has to handle.

mod budgets;
mod claims;
mod operating;
mod storms;
mod wasm;
