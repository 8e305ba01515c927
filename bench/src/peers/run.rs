//! A run from its start to its report: rounds, the judgement whether they say anything, and again.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;

use super::bars::QUIET;
use super::measure::{Sample, Void, measure};
use super::memory::{self, Memory};
use super::order::{Cell, of_round};
use super::process::child::{Process, free_address};
use super::process::cpu;
use super::report::{Report, environment::Environment};
use super::stats::Spread;
use super::subject::{Programs, Running, Subject, start};
use super::{chain, programs, report};
use crate::cli::PeersOptions;

/// Rounds, each the samples of all cells.
pub(crate) type Rounds = Vec<Vec<Sample>>;

/// Whether a run says something.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Standing {
    /// It does.
    Judged(Spread),
    /// Bare hyper cost too much of Envoy: the machine was busy.
    Noisy(Spread),
    /// Bare hyper or Envoy was not measured: nothing says how busy the machine was.
    Unjudged,
    /// Requests failed.
    Void(String),
}

/// Compares, and shows what came of it.
pub(crate) async fn compare(options: &PeersOptions) -> anyhow::Result<ExitCode> {
    let programs = programs::find(options)?;
    let environment = Environment::of(&programs, options);
    let folder = Folder::new()?;
    cpu::keep_to(cpu::LOAD);
    let (_backend, address) = backend(&programs, folder.path()).await?;
    let (mut standings, mut rounds) = (Vec::new(), Rounds::new());
    for rerun in 0..=options.reruns {
        let standing = match self::rounds(options, &programs, address, folder.path(), rerun).await {
            Ok(of_run) => {
                rounds = of_run;
                standing(&rounds)
            }
            Err(error) => Standing::Void(error.downcast::<Void>()?.to_string()),
        };
        say(&format!("run {}: {standing:?}", rerun + 1));
        let is_over = matches!(standing, Standing::Judged(_) | Standing::Unjudged);
        standings.push(standing);
        if is_over {
            break;
        }
    }
    let mut report = Report::new(environment, options, standings, &rounds);
    if !options.requests_only {
        report.memory = memory(&programs, address, folder.path()).await?;
        report.chain = Some(chain::count(&programs.onus, folder.path()).await?);
    }
    report::show(&report, options.report.as_deref())?;
    Ok(ExitCode::from(report.exit()))
}

async fn rounds(
    options: &PeersOptions,
    programs: &Programs,
    backend: SocketAddr,
    folder: &Path,
    rerun: u32,
) -> anyhow::Result<Rounds> {
    let time = Duration::from_secs(options.seconds);
    let (mut subjects, mut rounds) = (BTreeMap::new(), Rounds::new());
    for round in 0..options.rounds {
        if round.is_multiple_of(SITTING) {
            // The old ones go first.
            subjects.clear();
            subjects = self::subjects(options, programs, backend, folder).await?;
        }
        let number = rerun * options.rounds + round;
        let mut samples = Vec::new();
        for cell in of_round(options.seed, number, &cells(options, &subjects)) {
            let seed = options.seed ^ u64::from(number);
            let sample = measure(cell, &subjects[&cell.1], time, seed).await?;
            say(&report::line(number, &sample));
            samples.push(sample);
        }
        rounds.push(samples);
    }
    Ok(rounds)
}

fn standing(rounds: &Rounds) -> Standing {
    match report::ratio(rounds, &QUIET) {
        None => Standing::Unjudged,
        Some(ratio) if ratio.median <= QUIET.most => Standing::Judged(ratio),
        Some(ratio) => Standing::Noisy(ratio),
    }
}

/// Of Onus and of what it is compared with.
async fn memory(
    programs: &Programs,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Vec<Memory>> {
    let mut all = Vec::new();
    for subject in [Subject::Bare, Subject::Onus, Subject::Envoy, Subject::Haproxy, Subject::Nginx]
    {
        all.extend(memory::of(subject, programs, backend, folder).await?);
    }
    Ok(all)
}

/// The backend, beside the load.
async fn backend(programs: &Programs, folder: &Path) -> anyhow::Result<(Process, SocketAddr)> {
    let address = free_address()?;
    let mut command = Command::new(&programs.itself);
    command.args(["backend", "--listen", &address.to_string()]);
    let mut process = Process::start("backend", command, cpu::LOAD, folder)?;
    process.listens(address).await?;
    Ok((process, address))
}

/// Everybody who is asked and there.
async fn subjects(
    options: &PeersOptions,
    programs: &Programs,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<BTreeMap<Subject, Running>> {
    let mut subjects = BTreeMap::new();
    for subject in options.subjects() {
        match start(subject, programs, backend, folder).await? {
            Some(running) => {
                subjects.insert(subject, running);
            }
            None => say(&format!("{} is skipped: it is not there", subject.name())),
        }
    }
    Ok(subjects)
}

fn cells(options: &PeersOptions, subjects: &BTreeMap<Subject, Running>) -> Vec<Cell> {
    let works = options.works().into_iter();
    let cells = works.flat_map(|work| subjects.keys().map(move |subject| (work, *subject)));
    cells.filter(|(work, subject)| work.is_for(*subject)).collect()
}

/// For how many rounds a process lives: of two that are equal, one may cost a twentieth more than the
/// other for as long as it does, by where its memory happens to lie.
const SITTING: u32 = 3;

/// Says how far it is.
pub(crate) fn say(text: &str) {
    anstream::eprintln!("{text}");
}

/// A folder for configurations and logs, gone with the run.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("onus-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("create {}", path.display()))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // What is left of it is in the folder for what may be lost.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
