//! Dumps in, reports out.

mod expected;
