//! The integration tests of the vectors and of the tables that are printed from the decisions.

mod core_host;
mod decision_table;
