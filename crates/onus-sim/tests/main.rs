//! What the shipped rules keep on every small tree, that the checker would notice if they did not,
//! and what a simulated run says.

mod pages;
mod properties;
mod rules;
mod simulate;
