//! `onus proxy`: the sidecar.

use std::path::Path;

use onus_proxy::{ConfigFile, Overrides, ProxyConfig};
use serde_json::{Value, json};
use tokio::runtime;

use crate::analysis::{Client, block_on};
use crate::cli::{DrainOptions, ProxyCommand, ProxyOptions};

/// Runs the sidecar until it is told to stop, or asks one that runs for something.
pub(crate) fn run(options: &ProxyOptions) -> anyhow::Result<()> {
    match (&options.command, &options.config) {
        (Some(ProxyCommand::Drain(options)), _) => drain(options),
        (None, Some(path)) => serve(path),
        // Nothing that can be typed.
        (None, None) => Ok(()),
    }
}

fn drain(options: &DrainOptions) -> anyhow::Result<()> {
    let client = Client::at(&options.sidecar, options.token.clone())?;
    block_on(async { client.post::<Value>("/api/v1/drain", &json!({})).await }).map(drop)
}

fn serve(path: &Path) -> anyhow::Result<()> {
    let overrides = Overrides::from_env();
    let config = ProxyConfig::new(ConfigFile::read(path, &overrides)?)?;
    // One worker needs no threads that steal from each other.
    let mut builder = match config.workers() {
        1 => runtime::Builder::new_current_thread(),
        workers => {
            let mut builder = runtime::Builder::new_multi_thread();
            builder.worker_threads(workers);
            builder
        }
    };
    let runtime = builder.enable_all().build()?;
    let ended = runtime.block_on(onus_proxy::run(&config, path.to_owned(), &overrides));
    // A file that is still being read, or a resolver that does not answer, is not waited for.
    runtime.shutdown_background();
    Ok(ended?)
}
