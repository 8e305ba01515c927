//! Real services on loopback, counted at `GET /count`.

mod demo;
mod grpc;
mod hangs;
mod hot_keys;
pub(crate) mod http;
mod topologies;
mod vectors;
mod wire;
