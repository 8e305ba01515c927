//! `onus analysis` as a process of its own, services that report to it on sockets, and the commands
//! that read it.

mod backup;
mod config;
mod incident;
mod levers;
mod openapi;
mod overrides;
mod people;
mod process;
mod promql;
mod refused;
mod restarts;
mod schema;
pub(crate) mod server;
mod service;
mod shards;
mod store;
pub(crate) mod tls;
mod whole;
