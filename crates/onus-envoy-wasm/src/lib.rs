//! Error ownership as a Wasm plugin of Envoy: the same filters as in the dynamic module, for meshes
//! that load plugins, as Istio and Envoy Gateway do.
//!
//! One plugin is both filters; on which side of the application it stands is in its configuration,
//! or what Envoy says of the listener. Each worker has a memory of its own, so requests are kept as
//! records in the data that Envoy shares between workers. Decisions are `onus-envoy`'s; nothing
//! sits above this crate but Envoy. It is empty on machines that are no Wasm.

#![cfg(target_arch = "wasm32")]

mod counters;
mod log;
mod plugin;
mod shared_data;
mod stream;

mod start {
    use proxy_wasm::traits::RootContext;

    use crate::{log, plugin::Plugin};

    proxy_wasm::main! {{
        log::start();
        proxy_wasm::set_root_context(|_| -> Box<dyn RootContext> { Box::new(Plugin::default()) });
    }}
}
