//! What a proxy keeps in memory: right after its start, and with connections that do nothing.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde::Serialize;
use tokio::time::sleep;

use super::load::line::{Line, connect};
use super::process::usage::resident_mb;
use super::subject::{Programs, Subject, start};
use super::work::Work;

/// What a proxy keeps in memory, in MB.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Memory {
    pub(crate) subject: Subject,
    pub(crate) fresh_mb: f64,
    pub(crate) idle_mb: f64,
}

/// Starts a subject of its own and looks; `None` where its program is not there.
pub(crate) async fn of(
    subject: Subject,
    programs: &Programs,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Option<Memory>> {
    let Some(running) = start(subject, programs, backend, folder).await? else { return Ok(None) };
    let Some(pid) = running.pid() else { return Ok(None) };
    let fresh_mb = resident_mb(pid)?;
    let call = Arc::new(Work::Http1Saturation.call());
    let address = running.address(call.protocol);
    let mut connections = connect(address, call.protocol, IDLE, 1).await?;
    for connection in &mut connections {
        let name = subject.name();
        connection.exchange(&call).await.with_context(|| format!("ask {name} over each"))?;
    }
    // What is given back is given back by then.
    sleep(Duration::from_secs(1)).await;
    let idle_mb = resident_mb(pid)?;
    drop(connections);
    Ok(Some(Memory { subject, fresh_mb, idle_mb }))
}

/// Connections, each of which has served one request.
const IDLE: usize = 1_000;
