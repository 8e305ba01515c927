//! Files that list who calls whom.

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use onus_graph::{EdgeList, ListFormat, ListedEdge, Refused};

/// What files list, and what in them is no edge.
#[derive(Default)]
pub(crate) struct Graphs {
    pub(crate) edges: Vec<ListedEdge>,
    /// Files, what was skipped in them, and how much more is like it.
    pub(crate) refused: Vec<(String, Refused, u64)>,
}

impl Graphs {
    /// Reads all files. One that is not there, or too large to be a graph, is an error.
    pub(crate) fn read(files: &[PathBuf]) -> anyhow::Result<Self> {
        let mut graphs = Self::default();
        for path in files {
            let name = path.display().to_string();
            let list = read(path).with_context(|| format!("open {name}"))?;
            let unseen = list.refused_in_all - list.refused.len() as u64;
            let last = list.refused.len().saturating_sub(1);
            graphs.edges.extend(list.edges);
            graphs.refused.extend(list.refused.into_iter().enumerate().map(|(index, refused)| {
                (name.clone(), refused, if index == last { unseen } else { 0 })
            }));
        }
        Ok(graphs)
    }

    /// What was skipped, each with its file.
    pub(crate) fn complaints(&self) -> impl Iterator<Item = String> {
        self.refused.iter().map(|(file, refused, more)| {
            let more = if *more > 0 { format!(" (and {more} more)") } else { String::new() };
            format!("{file}: {refused}; skipped{more}")
        })
    }

    /// How much was skipped.
    pub(crate) fn skipped(&self) -> u64 {
        self.refused.iter().map(|(.., more)| more + 1).sum()
    }
}

fn read(path: &Path) -> anyhow::Result<EdgeList> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MOST + 1).read_to_end(&mut bytes)?;
    ensure!(bytes.len() as u64 <= MOST, "more than {} MiB; a graph is smaller", MOST >> 20);
    let text: Cow<'_, str> = String::from_utf8_lossy(&bytes);
    Ok(EdgeList::read(&text, ListFormat::of(&text)))
}

/// Bytes: a hundred times the largest graph known.
const MOST: u64 = 64 << 20;
