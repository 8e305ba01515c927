//! nginx as one process, connections to the backend used again.

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
    let listen = free_address()?;
    let place = folder.display();
    let text = format!(
        "daemon off;\nmaster_process off;\npid {place}/nginx.pid;\nerror_log {place}/nginx-error.log;\n\
         events {{ worker_connections 4096; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 1000000000;\n\
           client_body_temp_path {place}/nginx-body;\n  proxy_temp_path {place}/nginx-proxy;\n\
           fastcgi_temp_path {place}/nginx-fastcgi;\n  uwsgi_temp_path {place}/nginx-uwsgi;\n\
           scgi_temp_path {place}/nginx-scgi;\n\
           upstream backend {{ server {backend}; keepalive 256; keepalive_requests 1000000000; }}\n\
           server {{\n    listen {listen};\n    location / {{\n      proxy_pass http://backend;\n\
             proxy_http_version 1.1;\n      proxy_set_header Connection \"\";\n    }}\n  }}\n}}\n"
    );
    let config = written(folder, "nginx.conf", &text)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(config).arg("-e").arg(folder.join("nginx-error.log"));
    let mut process = Process::start("nginx", command, cpu::PROXY, folder)?;
    process.listens(listen).await?;
    Ok(Running { process: Some(process), http1: listen, http2: listen })
}
