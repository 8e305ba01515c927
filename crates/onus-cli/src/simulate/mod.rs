//! `onus simulate`: plays a scenario and prints what came of it.

mod source;
mod table;

use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use onus_sim::simulate::{self, Experiment, RunOptions, Scenario};

pub(crate) use source::Missing;

use crate::cli::{Format, SimulateOptions};

pub(crate) fn run(options: &SimulateOptions) -> anyhow::Result<()> {
    let Some(name) = &options.scenario else { return print(&source::list()) };
    let scenario = source::load(name, options)?;
    let experiment = play(&scenario, options)?;
    if let Some(folder) = &options.plot {
        plot(&experiment, folder)?;
    }
    print(&match options.output {
        Format::Table => table::render(&experiment, options.exact),
        Format::Json => simulate::json(&experiment),
        Format::Csv => simulate::csv(&experiment),
    })?;
    if experiment.partial { Err(Interrupted.into()) } else { Ok(()) }
}

/// The user stopped the command; what it had is printed.
#[derive(Debug, thiserror::Error)]
#[error("finish: interrupted, the result is partial")]
pub(crate) struct Interrupted;

/// Runs the scenario on threads of its own, while this one waits for the user to lose patience.
fn play(scenario: &Scenario, options: &SimulateOptions) -> anyhow::Result<Experiment> {
    let stop = AtomicBool::new(false);
    let progress = ProgressBar::new(scenario.runs())
        .with_style(ProgressStyle::with_template("{bar:40} {pos} of {len} runs, {eta} left")?);
    progress.enable_steady_tick(Duration::from_millis(100));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("start the runtime")?;
    let available = std::thread::available_parallelism().map_or(1, usize::from);
    let run_options = RunOptions {
        threads: options.threads.unwrap_or(available),
        stop: &stop,
        progress: &|| progress.inc(1),
    };
    let (send, done) = tokio::sync::oneshot::channel();
    let experiment = std::thread::scope(|scope| {
        scope.spawn(|| {
            // The other end is gone only after a panic, which says enough.
            let _ = send.send(simulate::run(scenario, &run_options));
        });
        runtime.block_on(async {
            tokio::pin!(done);
            tokio::select! {
                experiment = &mut done => return experiment,
                _ = asked_to_end() => stop.store(true, Ordering::Relaxed),
            }
            done.await
        })
    });
    progress.finish_and_clear();
    experiment.context("run the scenario")
}

/// Until the user, or whoever runs the command for them, asks it to end.
async fn asked_to_end() {
    let interrupted = tokio::signal::ctrl_c();
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminated) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = interrupted => (),
                _ = terminated.recv() => (),
            }
            return;
        }
    }
    // Where there are no signals the command runs to its end.
    if interrupted.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Writes the charts that make sense for the experiment, and tells of them.
fn plot(experiment: &Experiment, folder: &Path) -> anyhow::Result<()> {
    let complain = |path: &Path| format!("write {}", path.display());
    fs::create_dir_all(folder).with_context(|| complain(folder))?;
    for chart in simulate::charts(experiment) {
        let path = folder.join(chart.file);
        fs::write(&path, chart.svg).with_context(|| complain(&path))?;
        anstream::eprintln!("wrote {}", path.display());
    }
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")
}
