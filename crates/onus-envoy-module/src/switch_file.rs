//! The file with which an operator switches mode and shield while Envoy runs.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, TryLockError};
use std::time::{Duration, SystemTime};

use onus_envoy::{Agent, SwitchFile, Timestamp};

use crate::clock;

/// A watched file. The first stream of each second looks at it, so that a switch is in force for
/// the requests after it, and costs nothing while there are none.
pub(crate) struct WatchedFile {
    path: PathBuf,
    /// When it was last looked at, in nanoseconds of the process.
    looked_at: AtomicU64,
    seen: Mutex<Option<Look>>,
}

/// What a look at the file found.
#[derive(PartialEq, Eq)]
enum Look {
    Missing,
    Unreadable(String),
    Text { text: String, written: Option<SystemTime> },
}

const INTERVAL: Duration = Duration::from_secs(1);
/// The longest file that is read; a switch file has a few lines.
const SIZE_MAX: u64 = 64 * 1024;

impl WatchedFile {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.into(), looked_at: AtomicU64::new(0), seen: Mutex::new(None) }
    }

    /// Tells `agent` what the file says, if it is time to look and it says something else.
    pub(crate) fn follow(&self, agent: &Agent) {
        let now = clock::now();
        let looked_at = self.looked_at.load(Ordering::Relaxed);
        let due = Timestamp::from_nanos(looked_at).saturating_add(INTERVAL);
        if looked_at != 0 && now < due {
            return;
        }
        // Another stream is at it.
        let mut seen = match self.seen.try_lock() {
            Ok(seen) => seen,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        self.looked_at.store(now.as_nanos().max(1), Ordering::Relaxed);
        let look = Look::at(&self.path);
        if seen.as_ref() == Some(&look) {
            return;
        }
        let taken = agent.switch_file(look.file(clock::wall()), now);
        if let Some(error) = look.error().or_else(|| Some(taken.err()?.to_string())) {
            tracing::warn!(path = %self.path.display(), error, "onus: switch file refused; what was in force stays in force");
        }
        *seen = Some(look);
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
