//! The project's own tasks: set-up, tests and everything CI checks.
//!
//! Never part of the product: it depends on no crate of the workspace, so that it
//! builds in seconds and runs while the product does not compile.
//! People reach it by `cargo xtask …`; the `justfile` is the menu above it.

mod manifest;
mod setup;
mod step;
mod tasks;

use std::env;
use std::process::ExitCode;

use step::{Failure, say};

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["setup"] => setup::run(setup::System::Print),
        ["setup", "--system"] => setup::run(setup::System::Install),
        ["test"] => tasks::test(),
        ["ci"] => tasks::ci(),
        ["plugin"] => tasks::plugin(),
        ["counts"] => tasks::counts(),
        ["help" | "--help" | "-h"] => {
            say(USAGE);
            Ok(())
        }
        _ => Err(Failure::Usage(args.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say(&format!("\nxtask: {failure}"));
            if matches!(failure, Failure::Usage(_)) {
                say(USAGE);
                return ExitCode::from(2);
            }
            ExitCode::FAILURE
        }
    }
}

const USAGE: &str = "\
usage: cargo xtask <task>
  setup [--system]  fetch the pinned tools into target/peers; name the system packages
                    that are missing, and with --system install them
  test              setup, then docs, doc tests and every test
  plugin            the Wasm plugin of Envoy, in target/wasm32-wasip1/plugin
  counts            allocation and instruction counts against the checked-in figures
  ci                everything CI checks, cheap first; ends with `test`";
