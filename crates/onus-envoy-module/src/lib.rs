//! Error ownership as a dynamic module of Envoy: the hooks that Envoy calls, and the callbacks of
//! Envoy that they use.
//!
//! Envoy loads the library, asks for filters named `inbound`, `outbound` and `attempt`, and calls a hook at
//! each moment of a stream; [`onus_envoy`] says what to do. Callbacks are looked up when the library
//! is loaded, so that one library serves several versions of Envoy. No hook lets a panic out. This
//! is, beside the bench, the only unsafe code of the workspace; nothing sits above it but Envoy.

mod abi;
mod chance;
mod clock;
mod envoy_counters;
mod envoy_stream;
#[cfg(feature = "fault-injection")]
mod fault;
mod filter;
mod hooks;
mod log;
mod service_name;
mod switch_file;
