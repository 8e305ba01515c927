//! Which crate may depend on which, read from the manifests.

use std::collections::BTreeMap;
use std::process::Command;

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand};

use super::{assert_tidy, checkout};

/// The crates a workspace crate may name under `[dependencies]`, as ARCHITECTURE.md draws them.
/// Dev-dependencies are free: a test may look at anything.
const ALLOWED: &[(&str, &[&str])] = &[
    ("onus-core", &[]),
    ("onus-learn", &["onus-core"]),
    ("onus-graph", &["onus-core", "onus-learn"]),
    ("onus-traces", &["onus-core", "onus-learn"]),
    // Other people's YAML, which importing a configuration reads too; it knows nothing of Onus.
    ("onus-retry-config", &[]),
    // A client of Prometheus, the only other one with a socket below the command; nothing of Onus.
    ("onus-promql", &[]),
    // Joins what the others have read into a graph; it does no I/O itself (ADR 0016).
    (
        "onus-audit",
        &["onus-graph", "onus-learn", "onus-promql", "onus-retry-config", "onus-traces"],
    ),
    ("onus-api", &["onus-core"]),
    ("onus-agent", &["onus-core", "onus-learn"]),
    ("onus", &["onus-agent", "onus-api"]),
    ("onus-proxy", &["onus"]),
    ("onus-envoy", &["onus-agent", "onus-api"]),
    ("onus-envoy-module", &["onus-envoy"]),
    ("onus-envoy-wasm", &["onus-envoy"]),
    // A store of metrics may stand in for reports; it is asked as everybody asks it.
    ("onus-analysis", &["onus-core", "onus-learn", "onus-graph", "onus-api", "onus-promql"]),
    ("onus-sim", &["onus-core", "onus-learn", "onus-graph"]),
    ("onus-demo", &["onus"]),
    ("onus-conformance", &["onus-core"]),
    // Filters of Envoy that do nothing, to measure its interfaces.
    ("onus-bench-empty", &[]),
    ("xtask", &[]),
];

/// They stand above everything and nothing stands on them.
const TOPS: &[&str] = &["onus-cli", "onus-bench"];

/// Crate and the crates it names, of any origin.
type Manifests = BTreeMap<String, Vec<String>>;

fn complaints(manifests: &Manifests) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, dependencies) in manifests {
        let inside = dependencies.iter().filter(|on| manifests.contains_key(*on));
        if let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| known == name) {
            let forbidden = inside.filter(|on| !allowed.contains(&on.as_str()));
            complaints.extend(forbidden.map(|on| {
                format!(
                    "{name} -> {on}: this arrow is not in ARCHITECTURE.md; move the code to the side \
                     that may know the other, or argue for the arrow in an ADR and add it to arrows.rs"
                )
            }));
        } else if TOPS.contains(&name.as_str()) {
            let tops = inside.filter(|on| TOPS.contains(&on.as_str()));
            complaints.extend(tops.map(|on| format!("{name} -> {on}: nothing stands on {on}")));
        } else {
            complaints.push(format!(
                "{name}: an unknown crate; draw its arrows in ARCHITECTURE.md and add them to arrows.rs"
            ));
        }
    }
    if let Some(on) = manifests.get("onus-core").and_then(|core| core.first()) {
        complaints.push(format!(
            "onus-core -> {on}: the core has no dependencies, so that every host can run it"
        ));
    }
    complaints
}

fn manifests(metadata: &Metadata) -> Manifests {
    let named = |package: &cargo_metadata::Package| {
        let normal = package
            .dependencies
            .iter()
            .filter(|dependency| dependency.kind == DependencyKind::Normal);
        let names = normal.map(|dependency| dependency.name.clone()).collect();
        (package.name.to_string(), names)
    };
    metadata.packages.iter().map(named).collect()
}

#[test]
fn rule() {
    fn check(crates: &[(&str, &[&str])], expected: &[&str]) {
        let owned = |on: &[&str]| on.iter().map(|on| (*on).to_owned()).collect();
        let manifests = crates.iter().map(|(name, on)| ((*name).to_owned(), owned(on)));
        let complaints = complaints(&manifests.collect());
        let heads: Vec<_> = complaints.iter().filter_map(|c| c.split(':').next()).collect();
        assert_eq!(heads, expected, "{crates:?}");
    }
    let core: (&str, &[&str]) = ("onus-core", &[]);
    check(&[core, ("onus-agent", &["onus-core", "http"])], &[]);
    check(
        &[core, ("onus", &["onus-core"]), ("onus-cli", &["onus", "onus-core"])],
        &["onus -> onus-core"],
    );
    check(&[core, ("xtask", &["onus-core"])], &["xtask -> onus-core"]);
    check(&[core, ("onus-more", &[])], &["onus-more"]);
    check(&[("onus-core", &["bytes"])], &["onus-core -> bytes"]);
    check(&[("onus-cli", &[]), ("onus-bench", &["onus-cli"])], &["onus-bench -> onus-cli"]);
}

#[test]
fn crates_keep_to_the_arrows() {
    let metadata = MetadataCommand::new()
        .current_dir(checkout::root())
        .no_deps()
        .exec()
        .expect("cargo reads the workspace");
    let manifests = manifests(&metadata);
    assert!(manifests.len() > 5, "{manifests:?}");
    assert_tidy(&complaints(&manifests));
}

/// A second HTTP stack would double what a user of the binary audits.
#[test]
fn the_binary_is_free_of_other_stacks() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--package=onus-cli", "--edges=normal,build"])
        .args(["--prefix=none", "--format={p}"])
        .current_dir(checkout::root())
        .output()
        .expect("cargo is there: it runs this test");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8_lossy(&tree.stdout);
    let has = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    assert!(has("onus-cli"), "the tree starts at the binary:\n{tree}");
    for stack in ["reqwest", "tonic"] {
        assert!(
            !has(stack),
            "{stack} is in the tree of the binary: use hyper there, and the feature `{stack}` of `onus` in tests only"
        );
    }
}
