//! What peers do on the wire: bytes of HTTP/1.1 and frames of HTTP/2, in the order that a script
//! says. Each test is one of the ways in which retries broke elsewhere; docs/scenarios.md lists
//! them all.

mod answers;
mod bodiless;
mod breaks;
mod connections;
mod credit;
mod events;
mod gone;
mod interim;
mod line;
mod memory;
mod names;
mod notes;
mod raw;
mod refused;
mod relay;
mod streams;
mod upgrades;
mod uploads;
