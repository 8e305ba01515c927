//! The integration tests of the command and of the whole checkout, in one binary: linking is the slow part.

mod analysis;
mod audit;
mod demo;
mod deploy;
mod import;
mod model;
mod proxy;
#[cfg(test)]
mod sidecar;
mod simulate;
mod tidy;
mod traces;
