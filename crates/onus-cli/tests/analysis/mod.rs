//! `onus analysis` as a process of its own, services that report to it on sockets, and the commands
//! that read it.

mod backup;
mod config;
mod levers;
mod openapi;
mod overrides;
mod people;
mod promql;
mod refused;
mod restarts;
mod schema;
mod server;
mod service;
mod store;
mod tls;
mod whole;
