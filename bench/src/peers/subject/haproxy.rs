//! HAProxy with one thread, connections to the backend used again.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use super::Running;
use crate::peers::process::child::{Process, free_address, written};
use crate::peers::process::cpu;

pub(super) async fn start(
    program: &Path,
    backend: SocketAddr,
    folder: &Path,
) -> anyhow::Result<Running> {
    // What is spoken to a server is said for each, so there is a pair for each protocol.
    let (http1, http2) = (free_address()?, free_address()?);
    let text = format!(
        "global\n  nbthread 1\n  maxconn 4096\n\
         defaults\n  mode http\n  http-reuse always\n  timeout connect 2s\n  timeout client 60s\n  timeout server 60s\n\
         frontend http1\n  bind {http1}\n  default_backend http1\n\
         backend http1\n  server backend {backend}\n\
         frontend http2\n  bind {http2} proto h2\n  default_backend http2\n\
         backend http2\n  server backend {backend} proto h2\n"
    );
    let config = written(folder, "haproxy.cfg", &text)?;
    let mut command = Command::new(program);
    command.args(["-db", "-f"]).arg(config);
    let mut process = Process::start("haproxy", command, cpu::PROXY, folder)?;
    process.listens(http1).await?;
    Ok(Running { process: Some(process), http1, http2 })
}
