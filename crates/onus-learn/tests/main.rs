//! The estimator from outside.

mod directed;
mod population;
