//! The switch file of a running service: its kill switch and its shield, without a deployment.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use onus_agent::SwitchFile;

use crate::onus::WeakOnus;

/// How often the file is looked at; what it says is in force within two seconds.
const INTERVAL: Duration = Duration::from_secs(1);
/// The longest file that is read; a switch file has a few lines.
const SIZE_MAX: u64 = 64 * 1024;

/// What a look at the file found.
#[derive(Clone, PartialEq, Eq)]
enum Look {
    Missing,
    Unreadable(String),
    Text { text: String, written: Option<SystemTime> },
}

/// Follows the file until the service's last handle is gone.
pub(crate) async fn watch(onus: WeakOnus, path: PathBuf) {
    // Where there is no file at the start, there is nothing to hand over.
    let mut seen = Look::Missing;
    let mut first = true;
    loop {
        let look = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || Look::at(&path)).await
        };
        let Some(onus) = onus.upgrade() else { return };
        // A look that did not come to an end says nothing.
        if let Ok(look) = look {
            if std::mem::take(&mut first) {
                let there = look != Look::Missing;
                tracing::info!(path = %path.display(), there, "onus: watching the switch file");
            }
            if seen != look {
                let taken = onus.switch_file(look.file(onus.clock().wall()));
                if let Some(error) = look.error().or_else(|| Some(taken.err()?.to_string())) {
                    tracing::warn!(path = %path.display(), error, "onus: switch file refused; what was in force stays in force");
                }
                seen = look;
            }
        }
        drop(onus);
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Look {
    fn at(path: &Path) -> Self {
        match read(path) {
            Ok((text, _)) if text.len() as u64 > SIZE_MAX => {
                Self::Unreadable(format!("more than {SIZE_MAX} bytes"))
            }
            Ok((text, written)) => Self::Text { text, written },
            Err(error) if error.kind() == ErrorKind::NotFound => Self::Missing,
            Err(error) => Self::Unreadable(error.to_string()),
        }
    }

    fn file(&self, now: SystemTime) -> SwitchFile<'_> {
        match self {
            Self::Missing => SwitchFile::Missing,
            Self::Unreadable(_) => SwitchFile::Unreadable,
            Self::Text { text, written } => {
                // A file of the future, or of a file system without times, is new.
                let age = written.and_then(|written| now.duration_since(written).ok());
                SwitchFile::Says { text, age: age.unwrap_or_default() }
            }
        }
    }

    fn error(&self) -> Option<String> {
        match self {
            Self::Unreadable(error) => Some(error.clone()),
            Self::Missing | Self::Text { .. } => None,
        }
    }
}

/// The text, cut off where it is too long, and when it was written.
fn read(path: &Path) -> io::Result<(String, Option<SystemTime>)> {
    let file = File::open(path)?;
    let written = file.metadata()?.modified().ok();
    let mut text = String::new();
    file.take(SIZE_MAX + 1).read_to_string(&mut text)?;
    Ok((text, written))
}
