//! The manifests for Istio against the schemas of Istio's own definitions.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::cast::missing;

/// Says what is wrong with the manifest on its standard input; nothing where it is sound.
const CHECK: &str = r#"
import { readFileSync } from "node:fs";
import { WasmPlugin } from "@kubernetes-models/istio/extensions.istio.io/v1alpha1";
import { EnvoyFilter } from "@kubernetes-models/istio/networking.istio.io/v1alpha3";
const manifest = JSON.parse(readFileSync(0, "utf8"));
const Model = { WasmPlugin, EnvoyFilter }[manifest.kind];
try { new Model(manifest).validate(); } catch (error) { console.log(error.message); }
"#;

/// What Istio's schema says of a manifest.
fn complaint(folder: &Path, manifest: &Value) -> String {
    let mut node = Command::new("node")
        .args(["--input-type=module", "--eval", CHECK])
        // Modules are found from here.
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is there where npm has installed the schemas");
    let mut input = node.stdin.take().expect("it is piped");
    input.write_all(manifest.to_string().as_bytes()).expect("node reads");
    drop(input);
    let output = node.wait_with_output().expect("node ends");
    assert!(output.status.success(), "the check ran");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The schemas that `cargo xtask setup` has fetched; without them `test` is skipped.
fn schemas(test: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/peers/istio");
    if folder.join("node_modules/.package-lock.json").is_file() {
        return Some(folder);
    }
    missing(test, "the schemas of Istio", "cargo xtask setup");
    None
}

#[test]
fn istio_s_schemas_take_its_manifests() {
    let Some(folder) = schemas("istio_s_schemas_take_its_manifests") else { return };
    let wrong = [("phase", json!("STATISTICS")), ("configPatches", json!([{ "applyTo": "ALL" }]))];
    let names = ["istio-wasm-plugin.yaml", "istio-envoy-filter.yaml"];
    for (name, (field, value)) in names.into_iter().zip(wrong) {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/envoy");
        let text = fs::read_to_string(docs.join(name)).unwrap();
        let mut manifest: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(complaint(&folder, &manifest), "", "{name}");
        manifest["spec"][field] = value;
        assert_ne!(complaint(&folder, &manifest), "", "{name}: {field}");
    }
}
