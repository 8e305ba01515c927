//! `onus analysis backup FILE`: a copy of a running analysis' store.

use std::fs::{self, File};
use std::path::Path;

use anyhow::Context;

use super::{Client, block_on, print};
use crate::cli::Server;

pub(crate) fn backup(path: &Path, server: &Server) -> anyhow::Result<()> {
    let client = Client::new(server)?;
    // Beside the file that it replaces, so that no half of a copy has its name.
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let beside = Path::new(&name);
    let write = || format!("write {}", beside.display());
    let mut file = File::create(beside).with_context(write)?;
    let copied = block_on(client.download("/api/v1/backup", &mut file));
    let copied = copied.and_then(|length| {
        file.sync_all().with_context(write)?;
        fs::rename(beside, path).with_context(|| format!("write {}", path.display()))?;
        Ok(length)
    });
    if copied.is_err() {
        let _ = fs::remove_file(beside);
    }
    print(&format!("{} bytes are in {}\n", copied?, path.display()))
}
