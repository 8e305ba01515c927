//! Counts in, edge classes out: which callees take a caller down with them (protocol §9).
//! It never reads a clock, does no I/O, holds no lock and keeps no map: one [`Estimator`] is one
//! edge, and the owner of the edges feeds it once a minute.
//! Above it sits onus-agent, which learns locally.
//!
//! An edge (caller procedure → callee procedure) is judged by P = P(caller failed | callee
//! failed), measured on *isolated* failures only: those of requests in which no other edge
//! failed. From [`EdgeCounts`] of a minute an [`Estimator`] makes a [`Measurement`];
//! [`Declared::resolve`] lets an operator or an annotation in the code outrank it; the resulting
//! [`ClassFinding`] explains itself in words.
//!
//! ```
//! use onus_core::{EdgeClass, Timestamp};
//! use onus_learn::{CleanCounts, Declared, EdgeCounts, Estimator, frozen};
//!
//! let mut estimator = Estimator::new(Timestamp::ZERO);
//! // 20 isolated failures of the callee within a minute; the caller survived them all.
//! let minute = EdgeCounts { calls: 5_000, failures: 20, isolated: 20, ..EdgeCounts::default() };
//! let caller = CleanCounts { clean: 4_980, clean_failed: 3 };
//! let now = Timestamp::from_nanos(60_000_000_000);
//! estimator.minute(minute, frozen(caller), now);
//!
//! let finding = Declared::default().resolve(estimator.measure(now));
//! assert_eq!(finding.class, EdgeClass::FailOpen);
//! println!("{finding}");
//! ```

mod authority;
mod bytes;
mod class;
mod counts;
mod estimator;
mod explain;
mod measurement;
mod wilson;

pub use authority::{Annotation, Authority, ClassFinding, Contradiction, Declared};
pub use bytes::ESTIMATOR_BYTES;
pub use class::{MeasuredClass, raw_class, strict_class};
pub use counts::{CleanCounts, EdgeCounts, frozen};
pub use estimator::{EXPIRY, Estimator, MEMORY, MINUTE_WEIGHT};
pub use measurement::{Measurement, Rule};
pub use wilson::{Z90, wilson};
