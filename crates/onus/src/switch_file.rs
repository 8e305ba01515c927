//! The switch file of a running service: its kill switch and its shield, without a deployment.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::onus::WeakOnus;

/// How often the file is looked at; what it says is in force within two seconds.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest file that is read; a switch file has a few lines.
const SIZE_MAX: u64 = 64 * 1024;

/// Follows the file until the service's last handle is gone.
pub(crate) async fn watch(onus: WeakOnus, path: PathBuf) {
    // Where there is no file at the start, there is nothing to hand over.
    let mut seen = Some(Ok(None));
    let mut first = true;
    loop {
        let reading = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || read(&path)).await
        };
        let Some(onus) = onus.upgrade() else { return };
        if std::mem::take(&mut first) {
            let there = matches!(reading, Ok(Ok(Some(_))));
            tracing::info!(path = %path.display(), there, "onus: watching the switch file");
        }
        // A read that did not come to an end says nothing.
        if let Ok(text) = reading
            && seen.as_ref() != Some(&text)
        {
            let taken = match &text {
                Ok(text) => onus.switch_file(text.as_deref()).map_err(|error| error.to_string()),
                Err(error) => Err(error.clone()),
            };
            if let Err(error) = taken {
                tracing::warn!(path = %path.display(), error, "onus: switch file refused; what was in force stays in force");
            }
            seen = Some(text);
        }
        drop(onus);
        tokio::time::sleep(INTERVAL).await;
    }
}

/// The text of the file; `None` where there is none, which is an answer too.
fn read(path: &Path) -> Result<Option<String>, String> {
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    let size = file.take(SIZE_MAX + 1).read_to_string(&mut text);
    match size.map_err(|error| error.to_string())? as u64 {
        size if size > SIZE_MAX => Err(format!("more than {SIZE_MAX} bytes")),
        _ => Ok(Some(text)),
    }
}
