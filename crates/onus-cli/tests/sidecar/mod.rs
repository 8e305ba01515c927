//! `onus proxy` as a process of its own, and what is done to it.

mod apps;
mod cast;
mod faults;
mod hostile;
mod million;
mod names;
mod places;
mod reporting;
