//! The integration tests of the vectors and of the tables that are printed from the decisions.

mod decision_table;
mod vectors;
