//! Filters of Envoy that do nothing: what its interfaces cost without Onus, which `onus-bench`
//! measures beside the filters of Onus. A dynamic module, or a plugin where it is built for Wasm.

#[cfg(not(target_arch = "wasm32"))]
mod module;
#[cfg(target_arch = "wasm32")]
mod plugin;
