//! `onus demo`: runs the demo of `onus-demo` and prints what came of it.

mod analysis;
mod json;
mod sidecars;
mod table;

use std::io::Write;
use std::time::Duration;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use onus_demo::{Demo, Policy, Run};

use self::sidecars::Processes;
use crate::cli::{DemoOptions, Output};
use crate::files;

pub(crate) fn run(options: &DemoOptions) -> anyhow::Result<()> {
    let demo = Demo { files: files::raise_limit(), ..options.demo() };
    demo.check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    if options.analysis {
        let shown = runtime.block_on(analysis::run(&demo))?;
        let text = match options.output {
            Output::Table => shown.render(),
            Output::Json => serde_json::to_string_pretty(&shown)? + "\n",
        };
        return crate::analysis::print(&text);
    }
    let runs = runtime.block_on(all_policies(&demo, options.sidecar))?;
    let text = match options.output {
        Output::Table => table::render(&demo, &runs),
        Output::Json => json::render(&demo, &runs)?,
    };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")
}

async fn all_policies(demo: &Demo, sidecar: bool) -> anyhow::Result<Vec<Run>> {
    // Shown on a terminal only.
    let progress = ProgressBar::new(Policy::ALL.len() as u64)
        .with_style(ProgressStyle::with_template("{spinner} {pos} of {len} done: {msg} \u{2026}")?);
    progress.enable_steady_tick(Duration::from_millis(100));
    let mut runs = Vec::new();
    for policy in Policy::ALL {
        progress.set_message(policy.title());
        runs.push(if sidecar {
            // They end with their services.
            demo.run_beside(policy, &mut Processes::new()?).await?
        } else {
            demo.run(policy).await?
        });
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(runs)
}
