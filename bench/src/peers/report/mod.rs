//! The report: for tools as JSON, for people as Markdown.

pub(crate) mod environment;
mod markdown;

use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

use self::environment::Environment;
use super::bars::{BARS, Bar, FRESH_MB, Figure, IDLE_MB, Verdict, verdict};
use super::chain::Chain;
use super::measure::Sample;
use super::memory::Memory;
use super::order::Cell;
use super::run::{Rounds, Standing, say};
use super::stats::{Spread, ratios};
use super::subject::Subject;
use super::work::Work;
use crate::cli::PeersOptions;

/// Everything that a run has found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) environment: Environment,
    pub(crate) rounds: u32,
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    /// Of each run, the last of which is reported.
    pub(crate) standings: Vec<Standing>,
    pub(crate) bars: Vec<BarRow>,
    pub(crate) rows: Vec<Row>,
    pub(crate) memory: Vec<Memory>,
    pub(crate) chain: Option<Chain>,
    pub(crate) samples: Vec<Vec<Sample>>,
}

/// A bar, and what was found.
#[derive(Debug, Serialize)]
pub(crate) struct BarRow {
    pub(crate) name: &'static str,
    pub(crate) found: Option<Spread>,
    pub(crate) most: f64,
    pub(crate) aim: Option<f64>,
    pub(crate) verdict: Verdict,
    /// Whether both subjects were asked for this.
    #[serde(skip)]
    pub(crate) is_asked: bool,
}

/// What a subject did at a work, over all rounds.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) work: Work,
    pub(crate) subject: Subject,
    pub(crate) cpu_us: Option<Spread>,
    /// Of the same round.
    pub(crate) cpu_of_envoy: Option<Spread>,
    pub(crate) cpu_of_bare_hyper: Option<Spread>,
    pub(crate) user_share: Option<Spread>,
    pub(crate) voluntary_switches: Option<Spread>,
    pub(crate) per_second: Option<Spread>,
    pub(crate) p50_us: Option<Spread>,
    pub(crate) p99_us: Option<Spread>,
}

impl Report {
    pub(crate) fn new(
        environment: Environment,
        options: &PeersOptions,
        standings: Vec<Standing>,
        rounds: &Rounds,
    ) -> Self {
        let is_void = matches!(standings.last(), Some(Standing::Void(_)) | None);
        let samples = if is_void { Rounds::new() } else { rounds.clone() };
        let mut cells: Vec<Cell> =
            samples.iter().flatten().map(|sample| (sample.work, sample.subject)).collect();
        cells.sort_unstable();
        cells.dedup();
        Self {
            environment,
            rounds: options.rounds,
            seconds: options.seconds,
            seed: options.seed,
            standings,
            bars: BARS.iter().map(|bar| bar_row(&samples, bar, options)).collect(),
            rows: cells.into_iter().map(|cell| row(&samples, cell)).collect(),
            memory: Vec::new(),
            chain: None,
            samples,
        }
    }

    /// Whether the last run says something.
    pub(crate) fn is_judged(&self) -> bool {
        matches!(self.standings.last(), Some(Standing::Judged(_)))
    }

    /// The bars for memory: name, what was found, the most, and the verdict.
    pub(crate) fn memory_rows(
        &self,
    ) -> impl Iterator<Item = (&'static str, Option<f64>, f64, Verdict)> {
        let onus = self.memory.iter().find(|memory| memory.subject == Subject::Onus);
        let fresh = ("MB right after the start", onus.map(|memory| memory.fresh_mb), FRESH_MB);
        let idle = ("MB with 1,000 idle connections", onus.map(|memory| memory.idle_mb), IDLE_MB);
        let row = |(name, found, most)| (name, found, most, verdict(found, most, None));
        [fresh, idle].into_iter().map(row)
    }

    /// How the command ends: 0 where all is met, 1 where something is missed, 3 where nobody can say.
    pub(crate) fn exit(&self) -> u8 {
        let is_missed = self.bars.iter().any(|row| row.verdict == Verdict::Missed);
        let has_too_much = self.memory_rows().any(|(_, _, _, verdict)| verdict == Verdict::Missed);
        let is_inexact = self.chain.is_some_and(|chain| !chain.is_exact());
        match (self.is_judged(), is_missed || has_too_much || is_inexact) {
            (false, _) => 3,
            (true, true) => 1,
            (true, false) => 0,
        }
    }
}

/// Prints a report, and writes it where that is asked.
pub(crate) fn show(report: &Report, folder: Option<&Path>) -> anyhow::Result<()> {
    let markdown = markdown::text(report);
    anstream::println!("{markdown}");
    let Some(folder) = folder else { return Ok(()) };
    let json = serde_json::to_string_pretty(report)?;
    fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    for (ending, text) in [("md", markdown), ("json", json)] {
        let path = folder.join(format!("{}.{ending}", report.environment.commit));
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        say(&format!("written: {}", path.display()));
    }
    Ok(())
}

/// A sample, as it comes.
pub(crate) fn line(round: u32, sample: &Sample) -> String {
    let (work, subject) = (sample.work.name(), sample.subject.name());
    let cost = sample.cost.map_or(f64::NAN, |cost| cost.cpu_us);
    let rate = sample.per_second;
    format!("round {}: {work:<14} {subject:<14} {cost:>7.1} us {rate:>8.0}/s", round + 1)
}

/// What is found of a bar.
pub(crate) fn ratio(rounds: &Rounds, bar: &Bar) -> Option<Spread> {
    let pair = |samples: &Vec<Sample>| {
        (figure(samples, bar.of, bar.figure), figure(samples, bar.against, bar.figure))
    };
    ratios(rounds.iter().map(pair))
}

fn bar_row(rounds: &Rounds, bar: &Bar, options: &PeersOptions) -> BarRow {
    let (works, subjects) = (options.works(), options.subjects());
    let cells = [bar.of, bar.against];
    let is_asked =
        cells.iter().all(|(work, subject)| works.contains(work) && subjects.contains(subject));
    let found = ratio(rounds, bar);
    let verdict = verdict(found.map(|found| found.median), bar.most, bar.aim);
    BarRow { name: bar.name, found, most: bar.most, aim: bar.aim, verdict, is_asked }
}

fn row(rounds: &Rounds, cell: Cell) -> Row {
    let of = |subject| {
        let bar = Bar {
            name: "",
            figure: Figure::Cpu,
            of: cell,
            against: (cell.0, subject),
            most: 0.0,
            aim: None,
        };
        ratio(rounds, &bar)
    };
    let all = |figure: &dyn Fn(&Sample) -> Option<f64>| {
        Spread::of(rounds.iter().filter_map(|samples| figure(find(samples, cell)?)))
    };
    Row {
        work: cell.0,
        subject: cell.1,
        cpu_us: all(&|sample| Some(sample.cost?.cpu_us)),
        cpu_of_envoy: of(Subject::Envoy),
        cpu_of_bare_hyper: of(Subject::Bare),
        user_share: all(&|sample| Some(sample.cost?.user_share)),
        voluntary_switches: all(&|sample| Some(sample.cost?.voluntary_switches)),
        per_second: all(&|sample| Some(sample.per_second)),
        p50_us: all(&|sample| Some(sample.latency?.p50_us)),
        p99_us: all(&|sample| Some(sample.latency?.p99_us)),
    }
}

fn figure(samples: &[Sample], cell: Cell, figure: Figure) -> Option<f64> {
    let sample = find(samples, cell)?;
    match figure {
        Figure::Cpu => Some(sample.cost?.cpu_us),
        Figure::P50 => Some(sample.latency?.p50_us),
        Figure::P99 => Some(sample.latency?.p99_us),
    }
}

fn find(samples: &[Sample], cell: Cell) -> Option<&Sample> {
    samples.iter().find(|sample| (sample.work, sample.subject) == cell)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::peers::measure::Cost;

    /// A report of rounds in which bare hyper, Onus and Envoy cost this.
    fn report(standing: Standing, rounds: &[[f64; 3]]) -> Report {
        let sample = |(subject, cpu_us)| Sample {
            work: Work::Http1Saturation,
            subject,
            requests: 1,
            per_second: 1.0,
            cost: Some(Cost { cpu_us, user_share: 0.5, voluntary_switches: 0.1 }),
            latency: None,
        };
        let round = |costs: &[f64; 3]| {
            let subjects = [Subject::Bare, Subject::Onus, Subject::Envoy];
            subjects.into_iter().zip(*costs).map(sample).collect()
        };
        let rounds = rounds.iter().map(round).collect();
        let Command::Peers(options) = Cli::parse_from(["onus-bench", "peers"]).command else {
            panic!("it is that command");
        };
        Report::new(Environment::default(), &options, vec![standing], &rounds)
    }

    fn judged() -> Standing {
        Standing::Judged(Spread { median: 0.3, min: 0.3, max: 0.3 })
    }

    #[test]
    fn a_bar_is_judged_by_the_median_of_the_ratios() {
        fn check(rounds: &[[f64; 3]], expected: Verdict, exit: u8) {
            let report = report(judged(), rounds);
            let against_envoy = &report.bars[0];
            assert_eq!((against_envoy.verdict, report.exit()), (expected, exit), "{rounds:?}");
        }
        check(&[[34.0, 36.0, 100.0], [34.0, 35.0, 100.0], [80.0, 90.0, 100.0]], Verdict::Met, 0);
        check(&[[34.0, 37.0, 100.0]], Verdict::MetNotAim, 0);
        check(&[[38.0, 39.0, 100.0]], Verdict::Missed, 1);
        // Within the bar against Envoy, but more than 1.15 of bare hyper.
        check(&[[20.0, 30.0, 100.0]], Verdict::Met, 1);
    }

    #[test]
    fn a_run_that_says_nothing_gives_no_verdict() {
        let noisy = Standing::Noisy(Spread { median: 0.4, min: 0.4, max: 0.4 });
        assert_eq!(report(noisy, &[[30.0, 31.0, 100.0]]).exit(), 3);
        let void = report(Standing::Void("one failed".to_owned()), &[[30.0, 31.0, 100.0]]);
        assert_eq!(void.exit(), 3);
        assert!(void.rows.is_empty() && void.samples.is_empty());
        assert!(void.bars.iter().all(|bar| bar.verdict == Verdict::Skipped));
    }

    #[test]
    fn memory_and_the_chain_are_judged_too() {
        let mut of = report(judged(), &[[34.0, 35.0, 100.0]]);
        of.chain = Some(Chain { roots: 5, with_ownership: 10, without: 80 });
        of.memory = vec![Memory { subject: Subject::Onus, fresh_mb: 15.0, idle_mb: 25.0 }];
        assert_eq!(of.exit(), 0);
        of.memory[0].idle_mb = 25.1;
        assert_eq!(of.exit(), 1);
        of.memory[0].idle_mb = 25.0;
        of.chain = Some(Chain { roots: 5, with_ownership: 11, without: 80 });
        assert_eq!(of.exit(), 1);
    }

    #[test]
    fn people_read_what_was_found_and_what_was_not() {
        let text = markdown::text(&report(judged(), &[[34.0, 39.0, 100.0]]));
        for line in [
            "Run 1: judged, bare hyper cost 0.30 [0.30..0.30] of Envoy.",
            "| HTTP/1.1 small, saturation, against Envoy | 0.39 [0.39..0.39] | 0.38 | 0.36 | **missed** |",
            "| HTTP/1.1 small, saturation, against HAProxy |  | 1.15 | 1.05 | skipped |",
            "| onus | 39.0 [39.0..39.0] | 0.39 [0.39..0.39] | 1.15 [1.15..1.15] | 50 % | 0.10 | 1 |  |  |",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }
}
