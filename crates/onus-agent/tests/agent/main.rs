//! The agent as its hosts use it: moments go in, headers and verdicts come out. Time is an
//! argument, so no test waits.

#![expect(clippy::unwrap_used, reason = "in a test a panic is the report, in its helpers too")]

mod bounds;
mod breaks;
mod budgets;
mod claims;
mod correlation;
mod dropped;
mod evidence;
mod exposition;
mod faults;
mod host;
mod log;
mod mark;
mod metrics;
mod modes;
mod records;
mod repeats;
mod retries;
mod threads;
mod trust;
