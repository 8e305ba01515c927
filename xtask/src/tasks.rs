//! The tasks as lists of steps, each list readable from top to bottom.

use crate::manifest;
use crate::setup::{self, System};
use crate::step::{Failure, Step, installed, root, say};

/// Docs and every test of the workspace; what a newcomer runs. The many tests come last, so that
/// their summary is what the terminal ends with.
pub(crate) fn test() -> Result<(), Failure> {
    setup::run(System::Print)?;
    cargo("docs", "doc --no-deps --workspace --all-features --locked")
        .env("RUSTDOCFLAGS", "-D warnings")
        .run()?;
    cargo("doc tests", "test --doc --workspace --all-features --locked").run()?;
    // Loom replaces locks and atomics in everything it is built with, hence a build of its own.
    cargo("interleavings", "test --package onus-agent --lib drain --locked")
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", "target/loom")
        .run()?;
    plugin()?;
    if installed("cargo-nextest") {
        return cargo("tests", "nextest run --workspace --all-features --locked").run();
    }
    let targets = "--lib --bins --tests --examples";
    cargo("tests", &format!("test --workspace --all-features --locked {targets}")).run()
}

/// Everything CI checks, the cheap steps first, so that a slip is known in seconds.
pub(crate) fn ci() -> Result<(), Failure> {
    cargo("format", "fmt --all --check").hint("\nRun `cargo fmt --all`.").run()?;
    setup::run(System::Print)?;
    Step::new("spelling", "typos", "")
        .hint("\nA word that is right goes into typos.toml with its reason.")
        .run()?;
    Step::new("menu", "just", "--summary").run()?;
    cargo("dependencies", "deny --workspace check --hide-inclusion-graph bans licenses sources")
        .hint("\nThe rules and their reasons are in deny.toml.")
        .run()?;
    lint()?;
    fuzz_targets()?;
    counts()?;
    say("\n== cargo xtask test");
    test()
}

/// The Wasm plugin of Envoy, as it is handed out and as the tests load it.
pub(crate) fn plugin() -> Result<(), Failure> {
    setup::wasm_target()?;
    let plugin = "--package onus-envoy-wasm --target wasm32-wasip1 --profile plugin --locked";
    cargo("wasm plugin", &format!("build {plugin}")).run()
}

/// Allocation and instruction counts of the hot paths, compared with the checked-in figures.
pub(crate) fn counts() -> Result<(), Failure> {
    setup::gungraun_runner()?;
    cargo("allocation counts", "test --package onus-bench --locked").hint(RAISE).run()?;
    let bench = "bench --package onus-bench --bench instructions --locked";
    cargo("instruction counts", bench).hint(RAISE).run()
}

const RAISE: &str = "\nRaising a figure is a commit of its own: see CONTRIBUTING.md.";

/// Clippy over everything, then over `onus` with each feature alone: features only add API,
/// so none may need another to compile.
fn lint() -> Result<(), Failure> {
    cargo("lint", "clippy --workspace --all-targets --all-features --locked -- -D warnings")
        .run()?;
    setup::wasm_target()?;
    let wasm = "clippy --package onus-envoy-wasm --target wasm32-wasip1 --locked -- -D warnings";
    cargo("lint of the plugin", wasm).run()?;
    let none = String::new();
    for feature in [none].into_iter().chain(manifest::features_of_onus()?) {
        let features = format!("--no-default-features --features={feature}");
        let line = format!("clippy --package onus {features} --locked -- -D warnings");
        cargo("feature alone", &line).run()?;
    }
    Ok(())
}

/// The fuzz targets live outside the workspace; CI only makes sure that they compile.
fn fuzz_targets() -> Result<(), Failure> {
    if !root().join("fuzz/Cargo.toml").exists() {
        return Ok(());
    }
    cargo("fuzz targets", "check --manifest-path fuzz/Cargo.toml").run()
}

fn cargo(name: &'static str, args: &str) -> Step {
    Step::new(name, "cargo", args)
}
