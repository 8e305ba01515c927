//! The replay body against a scripted body: named situations, and all poll patterns by a machine.

mod ahead;
mod machine;
mod model;
mod scenarios;
mod script;
mod threads;
