//! A proxy as a process: its signals, and its configuration file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::config::{ConfigFile, Overrides, ProxyConfig, ProxyConfigError};
use crate::proxy::{Proxy, StartError};

/// Why a proxy ended.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Signals cannot be heard.
    #[error("listen for signals")]
    Signals(#[source] std::io::Error),
}

/// Runs a proxy until SIGTERM or SIGINT, and ends it in good order; the second of them ends it at
/// once. SIGHUP, or another text in the file at `path`, reloads the configuration.
///
/// # Errors
///
/// What keeps it from starting.
pub async fn run(
    config: &ProxyConfig,
    path: PathBuf,
    overrides: &Overrides,
) -> Result<(), RunError> {
    let hear = |kind| signal(kind).map_err(RunError::Signals);
    let mut signals = Signals {
        hangup: hear(SignalKind::hangup())?,
        terminate: hear(SignalKind::terminate())?,
        interrupt: hear(SignalKind::interrupt())?,
    };
    let proxy = Proxy::start(config).await?;
    for name in overrides.unknown() {
        tracing::warn!(name, "onus: no setting has this name; the variable is ignored");
    }
    let mut file = Watched::new(path);
    let mut looks = interval(LOOK_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let forced = tokio::select! {
            () = ended(&mut signals.terminate, &mut signals.interrupt) => break,
            _ = signals.hangup.recv() => true,
            _ = looks.tick() => false,
        };
        // A file may be slow, as on a disk that hangs, and holds up no end.
        let changed = tokio::select! {
            () = ended(&mut signals.terminate, &mut signals.interrupt) => break,
            changed = file.changed(forced) => changed,
        };
        if let Some(text) = changed {
            reload(&proxy, &file.path, text, overrides);
        }
    }
    tokio::select! {
        all = proxy.drain() => if !all {
            tracing::warn!("onus: the drain limit has passed, and what was under way is cut off");
        },
        () = ended(&mut signals.terminate, &mut signals.interrupt) => {
            tracing::warn!("onus: told twice to end, the proxy ends at once");
        }
    }
    Ok(())
}

struct Signals {
    hangup: Signal,
    terminate: Signal,
    interrupt: Signal,
}

async fn ended(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

/// Takes over what the file says, or tells why not.
fn reload(
    proxy: &Proxy,
    path: &Path,
    text: Result<String, ProxyConfigError>,
    overrides: &Overrides,
) {
    let read = text.and_then(|text| ProxyConfig::new(ConfigFile::with(&text, overrides)?));
    let taken = match read {
        Ok(config) => proxy.reload(&config),
        Err(error) => {
            proxy.refused(true);
            Err(error)
        }
    };
    if let Err(error) = taken {
        let error = with_causes(&error);
        tracing::warn!(
            path = %path.display(), error,
            "onus: configuration refused; what was in force stays in force"
        );
    }
}

/// An error and what led to it, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The configuration file, and what it said last.
struct Watched {
    path: PathBuf,
    seen: Option<String>,
}

impl Watched {
    fn new(path: PathBuf) -> Self {
        let seen = std::fs::read_to_string(&path).ok();
        Self { path, seen }
    }

    /// What the file says, if that is something else than before or somebody asks for it.
    async fn changed(&mut self, forced: bool) -> Option<Result<String, ProxyConfigError>> {
        let path = self.path.clone();
        let read = tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await.ok()?;
        match read {
            Ok(text) => {
                let is_new = self.seen.as_ref() != Some(&text);
                self.seen = Some(text.clone());
                (forced || is_new).then_some(Ok(text))
            }
            // Told once; a file that is being replaced is there again at the next look.
            Err(source) => {
                let is_new = self.seen.take().is_some();
                let path = self.path.clone();
                (forced || is_new).then_some(Err(ProxyConfigError::Unreadable { path, source }))
            }
        }
    }
}

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
