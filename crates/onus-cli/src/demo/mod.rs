//! `onus demo`: runs the demo of `onus-demo` and prints what came of it.

mod json;
mod table;

use std::io::Write;

use anyhow::Context;
use onus_demo::{Demo, DemoError, Policy, Run};

use crate::cli::{DemoOptions, Output};

pub(crate) fn run(options: &DemoOptions) -> anyhow::Result<()> {
    let demo = options.demo();
    demo.check()?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?;
    let runs = runtime.block_on(all_policies(&demo))?;
    let text = match options.output {
        Output::Table => table::render(&demo, &runs),
        Output::Json => json::render(&demo, &runs)?,
    };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

async fn all_policies(demo: &Demo) -> Result<Vec<Run>, DemoError> {
    let mut runs = Vec::new();
    for policy in Policy::ALL {
        runs.push(demo.run(policy).await?);
    }
    Ok(runs)
}
