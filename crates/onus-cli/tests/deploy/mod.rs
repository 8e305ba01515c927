//! What is shipped to run the sidecar: a unit, an image, manifests. Each is read by the tool that
//! reads it in the field.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tool; where it is not there `test` is skipped, unless it must not be.
fn tool(name: &str, test: &str) -> Option<PathBuf> {
    let fetched = root().join("target/peers/venv/bin").join(name);
    let system = Path::new("/usr/bin").join(name);
    let found = [fetched, system].into_iter().find(|path| path.exists());
    if found.is_none() {
        let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
        assert!(!required, "{test} needs {name}: run `cargo xtask setup`");
        // Not by `println!`, which is shown of failed tests only.
        let _ = writeln!(io::stderr(), "skipped: {test} needs {name}: `cargo xtask setup` has it");
    }
    found
}

/// Runs a tool that says nothing of what is right; what it says.
fn complaints(command: &mut Command) -> String {
    let output = command.current_dir(root()).output().expect("the tool runs");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    if output.status.success() { said } else { format!("{said}\n{}", output.status) }
}

/// The configuration in the manifests.
fn configured() -> String {
    let manifests = fs::read_to_string(root().join("deploy/kubernetes.yaml")).expect("it is there");
    let (_, block) = manifests.split_once("  onus.yaml: |\n").expect("it has a configuration");
    let lines = block.lines().take_while(|line| line.starts_with("    "));
    lines.map(|line| format!("{}\n", &line[4..])).collect()
}

#[test]
fn the_configuration_in_the_manifests_can_be_used() {
    let path = std::env::temp_dir().join(format!("onus-deploy-{}.yaml", std::process::id()));
    fs::write(&path, configured()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    let said = complaints(command.args(["config", "validate"]).arg(&path));
    fs::remove_file(path).unwrap();
    assert_eq!(said, "");
    assert!(configured().contains("service: shop/checkout"));
}

#[test]
fn what_the_analysis_section_names_is_mounted() {
    let manifests = fs::read_to_string(root().join("deploy/kubernetes.yaml")).unwrap();
    let mounts = manifests.split("mountPath: ").skip(1);
    let mounts: Vec<_> = mounts.filter_map(|rest| rest.split([',', '}']).next()).collect();
    let config = configured();
    let (_, section) = config.split_once("# analysis:\n").unwrap();
    let section: String = section
        .lines()
        .map_while(|line| line.strip_prefix("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    let files: Vec<_> = section.lines().filter_map(|line| line.split_once(": /")).collect();
    assert_eq!(files.len(), 3, "{section}");
    for (setting, path) in files {
        let folder = format!("/{}", path.rsplit_once('/').unwrap().0);
        assert!(mounts.contains(&&*folder), "{setting} is in {folder}, and mounted are {mounts:?}");
    }
    // It is understood up to the files, which are not here.
    let path = std::env::temp_dir().join(format!("onus-analysis-{}.yaml", std::process::id()));
    fs::write(&path, format!("{config}analysis:\n{section}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_onus"));
    let said = complaints(command.args(["config", "validate"]).arg(&path));
    fs::remove_file(path).unwrap();
    assert!(said.contains("/etc/onus-analysis/"), "{said}");
}

#[test]
fn the_unit_is_one_for_systemd() {
    let Some(analyze) = tool("systemd-analyze", "the_unit_is_one_for_systemd") else { return };
    let unit = fs::read_to_string(root().join("deploy/onus-proxy.service")).unwrap();
    // It looks whether the program is there.
    let unit = unit.replace("/usr/local/bin/onus", env!("CARGO_BIN_EXE_onus"));
    let folder = std::env::temp_dir().join(format!("onus-unit-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("onus-proxy.service");
    fs::write(&path, unit).unwrap();
    let said = complaints(Command::new(analyze).args(["verify", "--man=no"]).arg(&path));
    fs::remove_dir_all(folder).unwrap();
    // Of this unit alone, as it looks at those that it waits for too.
    let ours: Vec<_> = said.lines().filter(|line| line.contains("onus-proxy")).collect();
    assert!(ours.is_empty(), "{said}");
}

#[test]
fn the_image_is_built_by_the_rules() {
    let Some(hadolint) = tool("hadolint", "the_image_is_built_by_the_rules") else { return };
    assert_eq!(complaints(Command::new(hadolint).arg("deploy/Dockerfile")), "");
}

#[test]
fn the_manifests_are_those_of_kubernetes() {
    let test = "the_manifests_are_those_of_kubernetes";
    let Some(validate) = tool("kubernetes-validate", test) else { return };
    // The first version with sidecars, and the latest that the tool knows.
    for version in ["1.29", "1.37"] {
        let mut command = Command::new(&validate);
        command.args(["--strict", "--quiet", "-k", version, "deploy/kubernetes.yaml"]);
        assert_eq!(complaints(&mut command), "", "{version}");
    }
}
