//! All that can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::peers::{Subject, Work};

/// Onus beside the proxies that people run, on one machine, in one run
#[derive(Debug, Parser)]
#[command(version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What can be done.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Peers(PeersOptions),
    Backend(BackendOptions),
    Floor(FloorOptions),
}

/// Compare what a request costs Onus, the floors, and every peer that is there
///
/// Ends with 0 where every bar is met, 1 where one is missed or the comparison could not be made,
/// and 3 where the machine was too busy to say.
#[derive(Debug, Args)]
#[command(
    after_long_help = "Example: one work, three subjects, a look rather than a verdict\n\n    \
    onus-bench peers --work h1-saturation --subject onus --subject bare-hyper --subject envoy --rounds 2"
)]
pub(crate) struct PeersOptions {
    /// The `onus` that is measured
    #[arg(long, value_name = "FILE", default_value = "target/dist/onus")]
    pub(crate) onus: PathBuf,
    /// Envoy; without this the one of `cargo xtask setup`, or the first on the path
    #[arg(long, value_name = "FILE")]
    pub(crate) envoy: Option<PathBuf>,
    /// The dynamic module of Envoy that is measured
    #[arg(long, value_name = "FILE", default_value = "target/dist/libonus_envoy_module.so")]
    pub(crate) module: PathBuf,
    /// The Wasm plugin of Envoy that is measured
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/wasm32-wasip1/plugin/onus_envoy_wasm.wasm"
    )]
    pub(crate) plugin: PathBuf,
    /// Rounds; a report needs at least 5
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// How long each subject is measured in each round
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    pub(crate) seconds: u64,
    /// How often a noisy or void run is made again
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=10))]
    pub(crate) reruns: u32,
    /// The order within rounds, and the times of paced requests
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What is asked; everything without this
    #[arg(long, value_name = "NAME", value_parser = named_work)]
    pub(crate) work: Vec<Work>,
    /// Who is asked; everybody but Envoys with filters without this
    #[arg(long, value_name = "NAME", value_parser = named_subject)]
    pub(crate) subject: Vec<Subject>,
    /// Leave out memory and the chain of sidecars
    #[arg(long)]
    pub(crate) requests_only: bool,
    /// The commit that the measured `onus` is of; without this, that of the checkout
    #[arg(long, value_name = "HASH")]
    pub(crate) commit: Option<String>,
    /// Write the report into this folder, as JSON and as Markdown
    #[arg(long, value_name = "FOLDER")]
    pub(crate) report: Option<PathBuf>,
}

impl PeersOptions {
    /// What is asked.
    pub(crate) fn works(&self) -> Vec<Work> {
        if self.work.is_empty() { Work::ALL.to_vec() } else { self.work.clone() }
    }

    /// Who is asked.
    pub(crate) fn subjects(&self) -> Vec<Subject> {
        if self.subject.is_empty() { Subject::PEERS.to_vec() } else { self.subject.clone() }
    }
}

/// Answer requests as their paths say: /small, /large, /error?p=5, /delay?ms=20, and gRPC
#[derive(Debug, Args)]
pub(crate) struct BackendOptions {
    /// Where
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
}

/// Be the least that a proxy can be
#[derive(Debug, Args)]
pub(crate) struct FloorOptions {
    /// Which one
    pub(crate) floor: Floor,
    /// Where
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: SocketAddr,
    /// In front of whom
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) to: SocketAddr,
}

/// A floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Floor {
    /// Bytes from one socket to another
    Splice,
    /// hyper with a pool of connections
    Bare,
}

fn named_work(name: &str) -> Result<Work, String> {
    let known = || Work::ALL.map(Work::name).join(", ");
    let found = Work::ALL.into_iter().find(|work| work.name() == name);
    found.ok_or_else(|| format!("one of {}", known()))
}

fn named_subject(name: &str) -> Result<Subject, String> {
    let known = || Subject::all().map(Subject::name).collect::<Vec<_>>().join(", ");
    let found = Subject::all().find(|subject| subject.name() == name);
    found.ok_or_else(|| format!("one of {}", known()))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn works_and_subjects_go_by_their_names() {
        assert_eq!(named_work("h2-large"), Ok(Work::Http2Large));
        assert_eq!(named_subject("onus-off"), Ok(Subject::OnusOff));
        assert!(named_work("h3").unwrap_err().contains("h1-saturation"));
        assert!(named_subject("h3").unwrap_err().contains("bare-hyper"));
    }
}
