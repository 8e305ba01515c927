//! The switch file of a running service: its kill switch and its shield, without a deployment.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use onus_agent::SwitchLook;

use crate::onus::WeakOnus;

/// How often the file is looked at; what it says is in force within two seconds.
const INTERVAL: Duration = Duration::from_secs(1);

/// Follows the file until the service's last handle is gone.
pub(crate) async fn watch(onus: WeakOnus, path: PathBuf) {
    // Where there is no file at the start, there is nothing to hand over.
    let mut seen = SwitchLook::Missing;
    let mut first = true;
    loop {
        let look = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || SwitchLook::at(open(&path))).await
        };
        let Some(onus) = onus.upgrade() else { return };
        // A look that did not come to an end says nothing.
        if let Ok(look) = look {
            if std::mem::take(&mut first) {
                let there = look != SwitchLook::Missing;
                tracing::info!(path = %path.display(), there, "onus: watching the switch file");
            }
            if seen != look {
                let taken = onus.switch_file(look.file(onus.clock().wall())).err();
                let refused = taken.map(|error| error.to_string());
                if let Some(error) = look.error().or(refused.as_deref()) {
                    tracing::warn!(path = %path.display(), error, "onus: switch file refused; what was in force stays in force");
                }
                seen = look;
            }
        }
        drop(onus);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The file, and when it was written.
fn open(path: &Path) -> io::Result<(File, Option<SystemTime>)> {
    let file = File::open(path)?;
    let written = file.metadata()?.modified().ok();
    Ok((file, written))
}
