//! The command `onus`.
//!
//! It parses what is typed, calls the library that does the work, and shows the result: figures on
//! standard output, everything else on standard error. It never decides anything itself, and
//! nothing stands on it.

mod analysis;
mod audit;
mod check;
mod cli;
mod config;
mod demo;
mod exit;
mod files;
mod graphs;
mod import;
mod levers;
mod logging;
mod model;
mod now;
mod overrides;
mod promql;
mod proxy;
mod radius;
mod report;
mod simulate;
mod table;
mod tail;
mod traces;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};
use crate::exit::Exit;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(matches!(cli.command, Command::Proxy(_)));
    let result = match cli.command {
        Command::Config(options) => config::run(&options),
        Command::Demo(options) => demo::run(&options).map(|()| Exit::Done),
        Command::Model(options) => model::run(&options).map(|()| Exit::Done),
        Command::Simulate(options) => simulate::run(&options).map(|()| Exit::Done),
        Command::Traces(options) => traces::run(&options),
        Command::Audit(options) => audit::run(&options),
        Command::Analysis(options) => analysis::serve(&options).map(|()| Exit::Done),
        Command::Edges(options) => analysis::edges(&options).map(|()| Exit::Done),
        Command::Explain(options) => analysis::explain(&options).map(|()| Exit::Done),
        Command::Now(options) => now::run(&options).map(|()| Exit::Done),
        Command::Off(options) => levers::off(&options).map(|()| Exit::Done),
        Command::Overrides(options) => overrides::run(&options).map(|()| Exit::Done),
        Command::Shield(options) => levers::shield(&options).map(|()| Exit::Done),
        Command::Top(options) => analysis::top(&options).map(|()| Exit::Done),
        Command::Radius(options) => analysis::radius(&options).map(|()| Exit::Done),
        Command::Graph(options) => analysis::graph(&options).map(|()| Exit::Done),
        Command::Report(options) => report::run(&options).map(|()| Exit::Done),
        Command::Check(options) => check::run(&options),
        Command::Tail(options) => tail::run(&options).map(|()| Exit::Done),
        Command::Proxy(options) => proxy::run(&options).map(|()| Exit::Done),
    };
    Exit::from_result(result).into()
}
