//! The report for people.

use std::fmt::Write as _;

use super::{Report, Row};
use crate::peers::bars::Verdict;
use crate::peers::chain::Chain;
use crate::peers::run::Standing;
use crate::peers::stats::Spread;
use crate::peers::work::{Pace, Work};

/// The whole report.
pub(crate) fn text(report: &Report) -> String {
    let mut text = format!("# What a request costs, at {}\n\n", report.environment.commit);
    for (number, standing) in report.standings.iter().enumerate() {
        let _ = writeln!(text, "Run {}: {}.", number + 1, said(standing));
    }
    environment(&mut text, report);
    bars(&mut text, report);
    for work in Work::ALL {
        let rows: Vec<&Row> = report.rows.iter().filter(|row| row.work == work).collect();
        if !rows.is_empty() {
            of_work(&mut text, work, &rows);
        }
    }
    memory(&mut text, report);
    text
}

fn said(standing: &Standing) -> String {
    match standing {
        Standing::Judged(ratio) => {
            format!("judged, bare hyper cost {} of Envoy", spread(Some(*ratio), 2))
        }
        Standing::Noisy(ratio) => format!(
            "noisy, bare hyper cost {} of Envoy; others used the machine",
            spread(Some(*ratio), 2)
        ),
        Standing::Unjudged => {
            "not judged, bare hyper and Envoy were not both measured at h1-saturation".to_owned()
        }
        Standing::Void(why) => format!("void, {why}"),
    }
}

fn environment(text: &mut String, report: &Report) {
    let environment = &report.environment;
    let _ = write!(text, "\n## Where\n\n| | |\n|---|---|\n");
    let rounds = format!("{} of {} s, seed {}", report.rounds, report.seconds, report.seed);
    let cpus = format!("{}, {} CPUs", environment.cpu, environment.cpus);
    let rows: [(&str, &str); 7] = [
        ("date", &environment.date),
        ("CPU", &cpus),
        ("kernel", &environment.kernel),
        ("congestion control", &environment.congestion_control),
        ("load average", &environment.load_average),
        ("allocator of Onus", environment.allocator),
        ("rounds", &rounds),
    ];
    let versions = environment.versions.iter().map(|(name, said)| (*name, said.as_str()));
    for (name, value) in rows.into_iter().chain(versions) {
        let _ = writeln!(text, "| {name} | {} |", value.replace('|', "/"));
    }
}

fn bars(text: &mut String, report: &Report) {
    let _ = write!(
        text,
        "\n## Bars\n\nThe median of the rounds' ratios, with the least and the greatest.\n\n\
         | | found | at most | aim | |\n|---|---|---|---|---|\n"
    );
    for row in report.bars.iter().filter(|row| row.is_asked) {
        let verdict = word(row.verdict);
        let noisy = if report.is_judged() || row.found.is_none() { "" } else { ", not judged" };
        let aim = row.aim.map_or_else(String::new, |aim| format!("{aim:.2}"));
        let found = spread(row.found, 2);
        let _ = writeln!(
            text,
            "| {} | {found} | {:.2} | {aim} | {verdict}{noisy} |",
            row.name, row.most
        );
    }
    if report.memory.is_empty() && report.chain.is_none() {
        // Requests only.
        return;
    }
    for (name, found, most, verdict) in report.memory_rows() {
        let found = found.map_or_else(String::new, |found| format!("{found:.1}"));
        let _ = writeln!(text, "| {name} | {found} | {most:.0} | | {} |", word(verdict));
    }
    let verdict = match report.chain {
        None => Verdict::Skipped,
        Some(chain) if chain.is_exact() => Verdict::Met,
        Some(_) => Verdict::Missed,
    };
    let found = report.chain.map_or_else(String::new, |chain| {
        let Chain { roots, with_ownership, without } = chain;
        format!("{with_ownership} against {without} for {roots}")
    });
    let _ = writeln!(
        text,
        "| requests at the end of 4 hops, with ownership against without | {found} | 2 against 16 | | {} |",
        word(verdict)
    );
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::MetNotAim => "met, not the aim",
        Verdict::Missed => "**missed**",
        Verdict::Skipped => "skipped",
    }
}

fn memory(text: &mut String, report: &Report) {
    if report.memory.is_empty() {
        return;
    }
    let _ = write!(
        text,
        "\n## Memory\n\nMB in RAM.\n\n| | fresh | with 1,000 idle connections |\n|---|---|---|\n"
    );
    for memory in &report.memory {
        let (name, fresh, idle) = (memory.subject.name(), memory.fresh_mb, memory.idle_mb);
        let _ = writeln!(text, "| {name} | {fresh:.1} | {idle:.1} |");
    }
}

fn of_work(text: &mut String, work: Work, rows: &[&Row]) {
    let lines = work.lines();
    let _ = write!(
        text,
        "\n## {}\n\n{}, {} connections with {} at a time on each.\n\n\
         | | CPU us | of Envoy | of bare hyper | own code | switches | per second | p50 us | p99 us |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        work.name(),
        paced(work.pace()),
        lines.connections,
        lines.streams,
    );
    for row in rows {
        let share = row
            .user_share
            .map_or_else(String::new, |share| format!("{:.0} %", share.median * 100.0));
        let median = |spread: Option<Spread>, digits: usize| {
            spread.map_or_else(String::new, |spread| format!("{:.digits$}", spread.median))
        };
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {share} | {} | {} | {} | {} |",
            row.subject.name(),
            spread(row.cpu_us, 1),
            spread(row.cpu_of_envoy, 2),
            spread(row.cpu_of_bare_hyper, 2),
            median(row.voluntary_switches, 2),
            median(row.per_second, 0),
            median(row.p50_us, 0),
            median(row.p99_us, 0),
        );
    }
}

fn paced(pace: Pace) -> String {
    match pace {
        Pace::Saturation => "As fast as answers come".to_owned(),
        Pace::PerSecond(rate) => format!("{rate} requests a second"),
    }
}

fn spread(spread: Option<Spread>, digits: usize) -> String {
    let Some(Spread { median, min, max }) = spread else { return String::new() };
    format!("{median:.digits$} [{min:.digits$}..{max:.digits$}]")
}
