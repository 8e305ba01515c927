//! The floors of this crate, as processes of their own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::Running;
use crate::peers::process::child::{Process, free_address};
use crate::peers::process::cpu;

pub(super) async fn start(
    floor: &'static str,
    program: &Path,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    let listen = free_address()?;
    let mut command = Command::new(program);
    command.args(["floor", floor, "--listen", &listen.to_string(), "--to", &backend.to_string()]);
    let mut process = Process::start(floor, command, cpu::PROXY, folder)?;
    process.listens(listen).await?;
    Ok(Running { process: Some(process), http1: listen, http2: listen })
}
