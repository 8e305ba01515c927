//! What a request costs the process in between, in one run with those of others.

mod backend;
mod bars;
mod chain;
mod connection;
mod floor;
mod load;
mod measure;
mod memory;
mod order;
mod process;
mod programs;
mod report;
mod run;
mod stats;
mod subject;
mod work;

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use tokio::net::TcpListener;

use crate::cli::{BackendOptions, Floor, FloorOptions, PeersOptions};

pub(crate) use self::subject::Subject;
pub(crate) use self::work::Work;

/// Is a backend until it is stopped.
pub(crate) fn backend(options: &BackendOptions) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind(options.listen).await.context("listen")?;
        backend::serve(listener, Arc::default()).await;
        Ok(())
    })
}

/// Is a floor until it is stopped.
pub(crate) fn floor(options: &FloorOptions) -> anyhow::Result<()> {
    runtime()?.block_on(async {
        let listener = TcpListener::bind(options.listen).await.context("listen")?;
        match options.floor {
            Floor::Splice => floor::splice::serve(listener, options.to).await,
            Floor::Bare => floor::bare::serve(listener, options.to).await,
        }
        Ok(())
    })
}

/// Compares.
pub(crate) fn compare(options: &PeersOptions) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(run::compare(options))
}

/// One thread, as everything that is compared has.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}
