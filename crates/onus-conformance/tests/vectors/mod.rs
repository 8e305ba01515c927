//! The vectors, their files and their runner.

mod core_host;
mod loading;
mod reports;
