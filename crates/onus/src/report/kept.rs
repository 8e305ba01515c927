//! The last classes on disk, for a process that starts while the analysis is away.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use onus_api::ClassPage;
use serde::{Deserialize, Serialize};

/// The longest file that is read.
const SIZE_MAX: u64 = 64 * 1024 * 1024;

#[derive(Deserialize)]
struct Kept {
    /// When the page was handed back, in milliseconds since 1970.
    written: u64,
    page: ClassPage,
}

#[derive(Serialize)]
struct Keep<'a> {
    written: u64,
    page: &'a ClassPage,
}

/// The page and how old it is; `None` where there is none, or none that may be believed.
pub(crate) async fn read(
    path: PathBuf,
    staleness: Duration,
    now: SystemTime,
) -> Option<(ClassPage, Duration)> {
    let look = tokio::task::spawn_blocking(move || {
        if fs::metadata(&path).ok()?.len() > SIZE_MAX {
            return None;
        }
        let kept: Kept = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        let written = UNIX_EPOCH.checked_add(Duration::from_millis(kept.written))?;
        Some((kept.page, written))
    });
    let (page, written) = look.await.ok()??;
    // A page of the future is as old as nobody knows.
    let age = now.duration_since(written).ok()?;
    (age < staleness).then_some((page, age))
}

/// Writes the page under another name first, so that no half of it is read.
pub(crate) async fn write(path: PathBuf, page: &ClassPage, now: SystemTime) {
    let written = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let kept = Keep { written: u64::try_from(written).unwrap_or(u64::MAX), page };
    // Numbers and text: it cannot fail.
    let kept = serde_json::to_vec(&kept).unwrap_or_default();
    let shown = path.display().to_string();
    let done = tokio::task::spawn_blocking(move || -> io::Result<()> {
        let beside = path.with_extension("new");
        fs::write(&beside, kept)?;
        fs::rename(&beside, &path)
    });
    if let Ok(Err(error)) = done.await {
        tracing::warn!(path = shown, %error, "onus: the classes of the analysis cannot be kept on disk");
    }
}
