//! The model checker: every failure of every small call tree, against the shipped decisions.

mod bounds;
mod call;
mod choice;
mod config;
mod counterexample;
mod explore;
mod held;
mod mermaid;
mod mesh;
mod mesh_file;
mod paths;
mod property;
mod proviso;
mod rules;
mod run;
mod seen;
mod slice;
mod space;
#[cfg(test)]
mod stateright;
mod text;
mod topology;
mod worst;

pub use config::{Config, Faults, Hindrance, Retries, Role, Setting, Switches};
pub use counterexample::{Counterexample, Replay};
pub use explore::{Check, Finding, Findings};
pub use mesh::{Load, Mesh, OfService};
pub use property::Property;
pub use proviso::Provisos;
pub use rules::Rules;
pub use slice::{SLICES, Slice};
pub use topology::{Ends, Fan, Topology};
