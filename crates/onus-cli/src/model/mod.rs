//! `onus model`: runs the model checker of `onus-sim` and prints what it finds.

mod json;
mod mesh;
mod table;

use std::io::Write;
use std::thread;
use std::time::Duration;

use anyhow::{Context, anyhow};
use indicatif::{ProgressBar, ProgressStyle};
use onus_sim::model::{Check, Findings, Replay, Rules, SLICES, Slice};

use crate::cli::{ModelOptions, Output};
use crate::exit::Refused;

pub(crate) fn run(options: &ModelOptions) -> anyhow::Result<()> {
    if let Some(path) = &options.config {
        return mesh::run(path, options);
    }
    if let Some(id) = &options.rerun {
        let unknown =
            || Refused(format!("no trace has the id `{id}`; ids are printed with counterexamples"));
        let replay = Replay::of(id).ok_or_else(unknown)?;
        return print(&table::replay(&replay));
    }
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let rules = Rules::named(&options.rules).unwrap_or_default();
    let check = Check { rules, ..Check::shipped(options.nodes.into(), threads) };
    let slices: Vec<_> = SLICES.iter().filter(|slice| is_wanted(options, slice)).collect();
    let found = check_all(&check, &slices)?;
    let mut total = Findings::default();
    for (_, findings) in &found {
        total.add(findings.clone());
    }
    print(&match options.output {
        Output::Table => table::render(&check, &found, &total),
        Output::Json => json::render(&check, &total)?,
    })?;
    let broken = check.properties.iter().zip(&total.properties);
    let broken: Vec<_> = broken
        .filter(|(_, found)| found.violations > 0)
        .map(|(property, _)| property.name)
        .collect();
    if broken.is_empty() {
        return Ok(());
    }
    Err(anyhow!(
        "keep {} of {} properties: {}",
        broken.len(),
        check.properties.len(),
        broken.join(", ")
    ))
}

fn is_wanted(options: &ModelOptions, slice: &Slice) -> bool {
    options.slice.is_empty() || options.slice.iter().any(|name| name == slice.name)
}

fn check_all(
    check: &Check,
    slices: &[&'static Slice],
) -> anyhow::Result<Vec<(&'static Slice, Findings)>> {
    let all = slices.iter().map(|slice| check.configurations(slice)).sum();
    // Shown on a terminal only.
    let progress = ProgressBar::new(all).with_style(ProgressStyle::with_template(
        "{spinner} {human_pos} of {human_len} configurations: {msg} \u{2026}",
    )?);
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut found = Vec::new();
    for slice in slices {
        progress.set_message(slice.name);
        found.push((*slice, check.run(slice, &|done| progress.inc(done))));
    }
    progress.finish_and_clear();
    Ok(found)
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")
}
