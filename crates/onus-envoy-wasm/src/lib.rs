//! Error ownership as a Wasm plugin of Envoy: the same filters as in the dynamic module, for meshes
//! that load plugins, as Istio and Envoy Gateway do.
//!
//! One plugin is both filters; on which side of the application it stands is in its configuration,
//! or what Envoy says of the listener. Each worker has a memory of its own, so requests are kept as
//! records in the data that Envoy shares between workers. Decisions are `onus-envoy`'s; nothing
//! sits above this crate but Envoy. On machines that are no Wasm there is only what can be tested
//! there.

#[cfg(any(test, target_arch = "wasm32"))]
mod counter_name;
#[cfg(any(test, target_arch = "wasm32"))]
mod lines;
#[cfg(any(test, target_arch = "wasm32"))]
mod routes;

#[cfg(target_arch = "wasm32")]
mod abi;
#[cfg(target_arch = "wasm32")]
mod contexts;
#[cfg(target_arch = "wasm32")]
mod counters;
#[cfg(target_arch = "wasm32")]
mod hooks;
#[cfg(target_arch = "wasm32")]
mod log;
#[cfg(target_arch = "wasm32")]
mod plugin;
#[cfg(target_arch = "wasm32")]
mod shared_data;
#[cfg(target_arch = "wasm32")]
mod stream;
