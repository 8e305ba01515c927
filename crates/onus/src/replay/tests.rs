//! The replay body against a scripted body: named situations, and all poll patterns by a machine.

mod ahead;
mod contract;
mod machine;
mod model;
mod reading;
mod scenarios;
mod script;
mod threads;
