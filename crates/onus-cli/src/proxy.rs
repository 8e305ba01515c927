//! `onus proxy`: the sidecar.

use onus_proxy::{ConfigFile, Overrides, ProxyConfig};
use tokio::runtime;

use crate::cli::ProxyOptions;

/// Runs the sidecar until it is told to stop.
pub(crate) fn run(options: &ProxyOptions) -> anyhow::Result<()> {
    let overrides = Overrides::from_env();
    let config = ProxyConfig::new(ConfigFile::read(&options.config, &overrides)?)?;
    // One worker needs no threads that steal from each other.
    let mut builder = match config.workers() {
        1 => runtime::Builder::new_current_thread(),
        workers => {
            let mut builder = runtime::Builder::new_multi_thread();
            builder.worker_threads(workers);
            builder
        }
    };
    let path = options.config.clone();
    let runtime = builder.enable_all().build()?;
    let ended = runtime.block_on(onus_proxy::run(&config, path, &overrides));
    // A file that is still being read, or a resolver that does not answer, is not waited for.
    runtime.shutdown_background();
    Ok(ended?)
}
