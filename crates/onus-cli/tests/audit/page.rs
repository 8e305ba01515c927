//! docs/audit.md, typed from its top to its end.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use super::prometheus::{AT, Prometheus};
use super::{mesh, root, traces};

/// The blocks of a page: what they are of, and their text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.split_once('\n')).collect()
}

/// A folder with the programs that the page calls, and the mesh that they know.
fn folder() -> PathBuf {
    let folder =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("page-{}", std::process::id()));
    let bin = folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let yaml = root().join("docs/audit/mesh.yaml");
    fs::write(folder.join("jaeger.json"), traces::dump()).expect("the traces");
    let kubectl = format!(
        "#!/bin/sh\ncase \"$*\" in get*) exec cat '{}';; *port-forward*) exit 0;; esac\nexit 9\n",
        yaml.display()
    );
    let curl = format!("#!/bin/sh\nexec cat '{}'\n", folder.join("jaeger.json").display());
    for (name, script) in [("kubectl", kubectl), ("curl", curl)] {
        let path = bin.join(name);
        fs::write(&path, script).expect("the script");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
        }
    }
    folder
}

#[test]
fn every_command_of_the_page_shows_what_the_page_shows() {
    let test = "every_command_of_the_page_shows_what_the_page_shows";
    let Some(server) = Prometheus::of(test, &mesh::series()) else { return };
    let path = root().join("docs/audit.md");
    let page = fs::read_to_string(&path).expect("there is the page");
    let folder = folder();
    let onus = Path::new(env!("CARGO_BIN_EXE_onus")).parent().expect("it is in a folder");
    let inherited = env::var_os("PATH").unwrap_or_default();
    let programs = [folder.join("bin"), onus.to_owned()].into_iter();
    let programs = env::join_paths(programs.chain(env::split_paths(&inherited))).expect("a path");
    let mut shown = String::new();
    let mut current = page.clone();
    let (mut commands, mut compared) = (0, 0);
    for (of, text) in blocks(&page) {
        match of {
            "sh" => {
                let moment = if text.contains("--at") { "" } else { &format!(" --at {AT}") };
                let script =
                    text.replace("http://localhost:9090", &format!("{}{moment}", server.url));
                let output = Command::new("sh")
                    .args(["-uc", &script])
                    .env("PATH", &programs)
                    .current_dir(&folder)
                    .output()
                    .expect("there is a shell");
                let told = String::from_utf8_lossy(&output.stderr);
                // The example has something in it that is not followed.
                assert_eq!((output.status.code(), &*told), (Some(3), ""), "{script}");
                shown = String::from_utf8(output.stdout).expect("it is text");
                commands += text.lines().count();
            }
            "text" => {
                let [old, new] = [text, shown.trim_end()].map(|it| format!("```text\n{it}\n```"));
                current = current.replacen(&old, &new, 1);
                compared += 1;
            }
            other => panic!("a block of {other:?}"),
        }
    }
    let _ = fs::remove_dir_all(&folder);
    assert!(commands >= 9 && compared >= 2, "{commands} {compared}");
    if env::var_os("UPDATE_TABLES").is_some() {
        fs::write(&path, &current).expect("the page can be written");
        return;
    }
    assert!(
        current == page,
        "docs/audit.md shows something else; run `UPDATE_TABLES=1 cargo test -p onus-cli page` and \
         review what it then shows"
    );
}
