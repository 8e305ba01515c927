//! Files of configuration, and dumps of traces.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use onus_retry_config::{Import, RetryConfig};
use onus_traces::{Format, Limits, Reading};

/// What the files say together, and how many there are.
pub(crate) fn config(paths: &[PathBuf]) -> anyhow::Result<(RetryConfig, usize)> {
    let mut import = Import::default();
    let mut files = 0;
    for path in paths {
        for file in in_folder(path)? {
            let (name, bytes) = read(&file)?;
            // What is no text is told as a document that cannot be read.
            import.read(&name, &String::from_utf8_lossy(&bytes));
            files += 1;
        }
    }
    Ok((import.finish(), files))
}

pub(super) fn traces(paths: &[PathBuf]) -> anyhow::Result<Option<onus_traces::Report>> {
    if paths.is_empty() {
        return Ok(None);
    }
    let mut import = onus_traces::Import::new(Limits::default());
    for path in paths {
        let (name, source) = crate::traces::open(path)?;
        import.read(&name, source, Format::Detect);
    }
    Ok(Some(import.report(Reading::default())))
}

/// The files of a folder that may be configuration; a file by itself.
fn in_folder(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = || format!("read {}", path.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(path).with_context(failed)? {
        let file = entry.with_context(failed)?.path();
        let extension = file.extension().and_then(|extension| extension.to_str());
        if matches!(extension, Some("yaml" | "yml" | "json")) && file.is_file() {
            files.push(file);
        }
    }
    ensure!(
        !files.is_empty(),
        "read {}: no file in it is YAML or JSON by its name",
        path.display()
    );
    files.sort();
    Ok(files)
}

fn read(path: &Path) -> anyhow::Result<(String, Vec<u8>)> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).context("read standard input")?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let name = path.display().to_string();
    let bytes = fs::read(path).with_context(|| format!("read {name}"))?;
    Ok((name, bytes))
}
