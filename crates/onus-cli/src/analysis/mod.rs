//! `onus analysis`, and the commands that read it.

mod backup;
mod client;
mod edges;
mod explain;
mod parts;
mod radius;
mod serve;
mod top;
mod watch;

use std::io::Write;

use anyhow::Context;

pub(crate) use client::{Client, Refusal};
pub(crate) use edges::{all as all_edges, run as edges, window};
pub(crate) use explain::run as explain;
pub(crate) use parts::{UNREACHED, nothing, tell, whole};
pub(crate) use radius::{graph, radius};
pub(crate) use serve::run as serve;
pub(crate) use top::run as top;
pub(crate) use watch::watch;

/// Runs what waits for sockets.
pub(crate) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("start the runtime")?
        .block_on(work)
}

/// Prints a result on standard output.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")
}

/// One JSON document, with a line break at its end.
pub(crate) fn json(document: &impl serde::Serialize) -> anyhow::Result<String> {
    Ok(serde_json::to_string_pretty(document)? + "\n")
}
