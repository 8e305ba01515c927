//! Which programs are there, and which are not.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::subject::{Envoy, Programs, Subject};
use crate::cli::PeersOptions;

/// Finds the programs. A peer that is not there is skipped by name, but with `ONUS_PEERS=required`
/// it is an error.
pub(crate) fn find(options: &PeersOptions) -> anyhow::Result<Programs> {
    let is_onus = |subject: &Subject| match subject {
        Subject::Onus | Subject::OnusOff | Subject::OnusOutbound => true,
        Subject::Direct
        | Subject::Splice
        | Subject::Bare
        | Subject::Envoy
        | Subject::EnvoyAgain
        | Subject::EnvoyWith(_)
        | Subject::Haproxy
        | Subject::Nginx => false,
    };
    let asks_onus = options.subjects().iter().any(is_onus);
    if (asks_onus || !options.requests_only) && !options.onus.is_file() {
        bail!(
            "there is no {}; build it by `cargo build --profile dist --package onus-cli`, or name one with --onus",
            options.onus.display()
        );
    }
    let envoy = options.envoy.clone().or_else(of_setup).or_else(|| on_path("envoy"));
    let programs = Programs {
        itself: env::current_exe().context("find this program")?,
        onus: options.onus.clone(),
        envoy: envoy.map(|program| Envoy {
            program,
            module: options.module.clone(),
            plugin: options.plugin.clone(),
        }),
        haproxy: on_path("haproxy"),
        nginx: on_path("nginx"),
    };
    let peers = [
        ("Envoy", programs.envoy.is_some()),
        ("HAProxy", programs.haproxy.is_some()),
        ("nginx", programs.nginx.is_some()),
    ];
    let is_required = env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
    for (name, is_there) in peers {
        if !is_there && is_required {
            bail!("{name} is required by ONUS_PEERS and not there");
        }
    }
    Ok(programs)
}

/// Envoy in the folder that `cargo xtask setup` fills.
fn of_setup() -> Option<PathBuf> {
    let pythons = fs::read_dir("target/peers/venv/lib").ok()?;
    let envoy = |python: PathBuf| python.join("site-packages/envoy/_bin/envoy");
    pythons.flatten().map(|python| envoy(python.path())).find(|path| path.is_file())
}

/// Servers stand where only root's path leads.
fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    let folders = env::split_paths(&path).chain(more);
    folders.map(|folder| folder.join(program)).find(|path: &PathBuf| Path::is_file(path))
}
