//! One step of a task: a command that is named, shown, timed and must succeed.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Instant;
use std::{env, iter};

/// Why a task stopped.
pub(crate) enum Failure {
    /// The arguments name no task.
    Usage(String),
    /// A command could not be started at all.
    Missing { step: &'static str, command: String, error: io::Error, hint: &'static str },
    /// A command ran and reported failure.
    Failed { step: &'static str, command: String, status: ExitStatus, hint: &'static str },
    /// A file of the project or of the set-up could not be read or written.
    File { path: PathBuf, error: io::Error },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(args) => write!(f, "no such task: `{args}`"),
            Self::Missing { step, command, error, hint } => {
                write!(f, "step `{step}` could not start: `{command}`: {error}{hint}")
            }
            Self::Failed { step, command, status, hint } => {
                write!(f, "step `{step}` failed: `{command}` ({status}){hint}")
            }
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

/// A command with the name that a failure is reported under.
pub(crate) struct Step {
    name: &'static str,
    command: Command,
    hint: &'static str,
}

impl Step {
    /// `args` is split at spaces; an argument that may contain one is added with [`Self::arg`].
    pub(crate) fn new(name: &'static str, program: impl AsRef<OsStr>, args: &str) -> Self {
        let mut command = Command::new(program);
        command.args(args.split_whitespace()).current_dir(root());
        // The fetched tools come first, so that everybody runs the pinned versions.
        let inherited = env::var_os("PATH").unwrap_or_default();
        let fetched = [peers_dir().join("venv/bin"), peers_dir().join("bin")];
        let path = fetched.into_iter().chain(env::split_paths(&inherited));
        if let Ok(path) = env::join_paths(path) {
            command.env("PATH", path);
        }
        Self { name, command, hint: "" }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn env(mut self, key: &str, value: &str) -> Self {
        self.command.env(key, value);
        self
    }

    /// What to do about a failure that the command itself does not explain; starts with its own separator.
    pub(crate) fn hint(mut self, hint: &'static str) -> Self {
        self.hint = hint;
        self
    }

    /// Shows the command, runs it with its output passed on, and says how long it took.
    #[expect(
        clippy::disallowed_methods,
        reason = "the time a step took is for the person who waits for it"
    )]
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let command = self.line();
        say(&format!("\n== {}: {command}", self.name));
        let started = Instant::now();
        match self.command.status() {
            Ok(status) if status.success() => {
                let seconds = started.elapsed().as_secs_f32();
                say(&format!("== {}: done in {seconds:.1} s", self.name));
                Ok(())
            }
            Ok(status) => {
                Err(Failure::Failed { step: self.name, command, status, hint: self.hint })
            }
            Err(error) => {
                Err(Failure::Missing { step: self.name, command, error, hint: self.hint })
            }
        }
    }

    /// The command as a person would type it at the root of the project.
    fn line(&self) -> String {
        let set = self
            .command
            .get_envs()
            .filter(|(key, _)| *key != "PATH")
            .filter_map(|(key, value)| Some((key, value?)))
            .map(|(key, value)| format!("{}={:?}", key.display(), value.display()));
        let words = iter::once(self.command.get_program()).chain(self.command.get_args());
        let words = words.map(|word| {
            let word = Path::new(word);
            word.strip_prefix(root()).unwrap_or(word).display().to_string()
        });
        set.chain(words).collect::<Vec<_>>().join(" ")
    }
}

/// The root of the checkout: the folder above this package.
pub(crate) fn root() -> PathBuf {
    // Cargo sets it for `cargo run`; a moved checkout is then still found.
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    let root = package.and_then(|package| package.parent().map(Path::to_owned));
    root.unwrap_or_else(|| PathBuf::from("."))
}

/// Where `setup` puts what it fetches.
pub(crate) fn peers_dir() -> PathBuf {
    root().join("target/peers")
}

/// Whether `program` is on the path; it must know `--version`.
pub(crate) fn installed(program: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// A line for the person who started the task.
#[expect(clippy::print_stdout, reason = "the tasks talk to a terminal and to CI's log")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
