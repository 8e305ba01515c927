//! The file with which an operator switches mode and shield while Envoy runs.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError, Weak};
use std::time::{Duration, SystemTime};

use onus_envoy::{Service, SwitchLook, Timestamp};

use crate::clock;

/// A watched file. The first stream of each second looks at it, so that a switch is in force for
/// the requests after it, and costs nothing while there are none.
pub(crate) struct WatchedFile {
    /// The service that follows it.
    service: Arc<Service>,
    path: PathBuf,
    /// When it was last looked at, in nanoseconds of the process.
    looked_at: AtomicU64,
    seen: Mutex<Option<SwitchLook>>,
}

const INTERVAL: Duration = Duration::from_secs(1);

/// The files of all services. A service's filters watch its file together, so that what it says is
/// told once.
static WATCHED: Mutex<Vec<Weak<WatchedFile>>> = Mutex::new(Vec::new());

impl WatchedFile {
    /// The file of `service`, if it has one.
    pub(crate) fn of(service: &Arc<Service>) -> Option<Arc<Self>> {
        let path = service.config().switch_file.as_deref()?;
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        watched.retain(|file| file.strong_count() > 0);
        let found = watched.iter().filter_map(Weak::upgrade);
        if let Some(file) = found.into_iter().find(|file| Arc::ptr_eq(&file.service, service)) {
            return Some(file);
        }
        let (looked_at, seen) = (AtomicU64::new(0), Mutex::new(None));
        let file = Arc::new(Self { service: service.clone(), path: path.into(), looked_at, seen });
        watched.push(Arc::downgrade(&file));
        Some(file)
    }

    /// Tells the service what the file says, if it is time to look and it says something else.
    pub(crate) fn follow(&self) {
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
        let look = SwitchLook::at(open(&self.path));
        if seen.as_ref() == Some(&look) {
            return;
        }
        let taken = self.service.agent().switch_file(look.file(clock::wall()), now).err();
        let refused = taken.map(|error| error.to_string());
        if let Some(error) = look.error().or(refused.as_deref()) {
            tracing::warn!(path = %self.path.display(), error, "onus: switch file refused; what was in force stays in force");
        }
        *seen = Some(look);
    }
}

/// The file, and when it was written.
fn open(path: &Path) -> io::Result<(File, Option<SystemTime>)> {
    let file = File::open(path)?;
    let written = file.metadata()?.modified().ok();
    Ok((file, written))
}
