//! What is typed for an analysis, checked before it runs.

use std::fs;

use super::server::{Folder, onus};

#[test]
fn a_configuration_is_checked_shown_and_explained() {
    let folder = Folder::new();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let config = |arguments: &[&str]| {
        let output = onus(&[&["config"], arguments, &["--of", "analysis"]].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, example, _) = config(&["example"]);
    assert_eq!(code, Some(0));
    fs::write(path("good"), &example).expect("it is written");
    assert_eq!(config(&["validate", &path("good")]), (Some(0), String::new(), String::new()));
    let (code, shown, _) = config(&["show", &path("good")]);
    assert!(code == Some(0) && shown.contains("edges-per-service: 10000"), "{shown}");
    let (_, schema, _) = config(&["schema"]);
    assert!(schema.contains("\"edges-per-service\""), "{schema}");

    fs::write(path("bad"), "data: x\nlimits:\n  windows: 1m\n").expect("it is written");
    let bad = path("bad");
    let says = format!(
        "error: failed to understand {bad}:3:12: limits.windows is 1m; allowed is 1h to 366d\n"
    );
    assert_eq!(config(&["validate", &bad]), (Some(1), String::new(), says.clone()));
    let output = onus(&["analysis", "--config", &bad]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), says);
    fs::write(path("unguarded"), "data: x\nlisten: 0.0.0.0:7480\n").expect("it is written");
    let (code, _, unguarded) = config(&["validate", &path("unguarded")]);
    let says = "listen is 0.0.0.0:7480, which is no address of loopback, and there are no `grants`; \
                add grants, or say `open: true`";
    assert!(code == Some(1) && unguarded.contains(says), "{unguarded}");
    let (code, _, missing) = config(&["validate", &path("nothing")]);
    assert!(code == Some(1) && missing.contains("No such file"), "{missing}");
}
