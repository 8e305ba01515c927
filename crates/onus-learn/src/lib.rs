//! Counts in, edge classes out: which callees take a caller down with them (protocol §9).
//! It never reads a clock, does no I/O, holds no lock and keeps no map: one [`Estimator`] is one
//! edge, and the owner of the edges feeds it once a minute.
//! Above it sit onus-agent (local learning), onus-analysis (learning for all replicas),
//! onus-graph and onus-sim.
//!
//! An edge (caller procedure → callee procedure) is judged by P = P(caller failed | callee
//! failed), measured on *isolated* failures only: those of requests in which no other edge
//! failed. From [`EdgeCounts`] of a minute an [`Estimator`] makes a [`Measurement`].

mod class;
mod counts;
mod estimator;
mod measurement;
mod wilson;

pub use class::{MeasuredClass, raw_class};
pub use counts::{CleanCounts, EdgeCounts, frozen};
pub use estimator::{EXPIRY, Estimator, MEMORY, MINUTE_WEIGHT};
pub use measurement::{Measurement, Rule};
pub use wilson::{Z90, wilson};
