//! What came of a scenario, for tools.

mod csv;
mod json;

pub use csv::csv;
pub use json::json;
