//! The decisions of error ownership: may this failed attempt be retried, and what does a service
//! claim of its error?
//!
//! The crate is pure: facts go in, verdicts come out. It has no clock, no randomness, no floats,
//! no hash maps, no locks and no dependencies, and every state is `Eq + Hash`, so that a simulator
//! and a model checker run the very code that production runs. It performs no I/O and never
//! fails. `onus-agent` sits above it, with the tables and locks that the hosts of one process
//! share.
//!
//! Start with [`decide`] and [`InboundCall::claim`].

#![no_std]
#![deny(clippy::float_arithmetic)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;
mod brake;
mod budget;
mod call_bytes;
mod claim;
mod criteria;
mod deadline;
mod decision;
mod draw;
mod edge;
mod error;
mod gate;
mod inbound;
mod mode;
mod outbound;
mod policy;
mod probe;
mod repeat;
mod shield;
mod slots;
mod time;

pub use backoff::Backoff;
pub use brake::{Brake, BrakeEvent};
pub use budget::{BudgetConfig, Deposit, RetryBudget};
pub use call_bytes::CALL_BYTES;
pub use claim::{CalleeClaim, Claim, ClaimReason};
pub use criteria::{Ending, criteria_met};
pub use deadline::{time_for_callee, time_for_transport};
pub use decision::{Facts, PushbackFact, Stop, decide, decide_unsuppressed};
pub use draw::Draw;
pub use edge::{EdgeClass, EdgeId, EdgeState};
pub use error::{CallError, ErrorSet};
pub use gate::Gate;
pub use inbound::{Circumstances, ClaimVerdict, EdgeOutcome, InboundCall};
pub use mode::{Arm, Lot, Mode, Ownership, Share};
pub use outbound::{Failure, OutboundCall, Pushback, Retry, RetryCause, Terms, Tries, Verdict};
pub use policy::{DeclaredRetries, EdgePolicy, MIN_ATTEMPT_TIME, MethodKind, RetryPolicy};
pub use repeat::CallIdentity;
pub use shield::{SHIELD_DEFAULT, Shield};
pub use slots::SlotId;
pub use time::Timestamp;
