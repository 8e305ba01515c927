//! `onus-bench`: Onus beside the proxies that people run, on one machine, in one run.
//!
//! It starts a backend, floors, Onus and every peer that is there, sends them the same requests,
//! and compares what each request costs the process in between. Nothing of it is in the product.

mod cli;
mod peers;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

fn main() -> anyhow::Result<ExitCode> {
    match Cli::parse().command {
        Command::Backend(options) => peers::backend(&options).map(|()| ExitCode::SUCCESS),
        Command::Floor(options) => peers::floor(&options).map(|()| ExitCode::SUCCESS),
        Command::Peers(options) => peers::compare(&options),
    }
}
