//! The command `onus`.
//!
//! It parses what is typed, calls the library that does the work, and shows the result: figures on
//! standard output, everything else on standard error. It never decides anything itself, and
//! nothing stands on it.

mod cli;
mod config;
mod demo;
mod exit;
mod files;
mod logging;
mod model;
mod proxy;
mod simulate;
mod traces;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(matches!(cli.command, Command::Proxy(_)));
    let result = match cli.command {
        Command::Config(options) => config::run(&options).map(|()| Exit::Done),
        Command::Demo(options) => demo::run(&options).map(|()| Exit::Done),
        Command::Model(options) => model::run(&options).map(|()| Exit::Done),
        Command::Simulate(options) => simulate::run(&options).map(|()| Exit::Done),
        Command::Traces(options) => traces::run(&options),
        Command::Proxy(options) => proxy::run(&options).map(|()| Exit::Done),
    };
    Exit::from_result(result).into()
}
