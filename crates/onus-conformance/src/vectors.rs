//! The vectors, read from their files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::de::DeserializeOwned;

use crate::step::{self, StepVector};
use crate::tree::{self, TreeVector};

/// All vectors, in the order of their files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Vectors {
    /// One service, moment by moment.
    pub steps: Vec<StepVector>,
    /// Trees of services with faults.
    pub trees: Vec<TreeVector>,
}

impl Vectors {
    /// Reads `steps/*.yaml` and `trees/*.yaml` of a folder.
    ///
    /// # Errors
    ///
    /// A file that cannot be read, is not in the format, or has a vector that makes no sense.
    pub fn load(folder: &Path) -> Result<Self, LoadError> {
        let mut names = BTreeSet::new();
        Ok(Self {
            steps: read(&folder.join("steps"), &mut names)?,
            trees: read(&folder.join("trees"), &mut names)?,
        })
    }

    /// The vectors of this checkout, in `docs/conformance/`.
    ///
    /// # Panics
    ///
    /// With the place and the reason if they cannot be loaded.
    #[must_use]
    pub fn shipped() -> Self {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/conformance");
        Self::load(Path::new(folder)).unwrap_or_else(|error| panic!("failed to {}", error.chain()))
    }

    /// The vectors whose name contains `part`, to look at a few.
    #[must_use]
    pub fn named(mut self, part: &str) -> Self {
        self.steps.retain(|vector| vector.name.contains(part));
        self.trees.retain(|vector| vector.name.contains(part));
        self
    }
}

/// Why vectors could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A folder or file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The folder or file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not in the format.
    #[error("parse {}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<serde_saphyr::Error>,
    },
    /// A vector makes no sense.
    #[error("accept {}: the vector `{name}` {problem}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The vector.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
}

impl LoadError {
    /// The error with its cause, for people.
    #[must_use]
    pub fn chain(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

/// A vector of one kind.
trait Vector: DeserializeOwned {
    fn name(&self) -> &str;
    fn cites(&self) -> &[String];
    fn check(&self) -> Result<(), String>;
}

impl Vector for StepVector {
    fn name(&self) -> &str {
        &self.name
    }

    fn cites(&self) -> &[String] {
        &self.cites
    }

    fn check(&self) -> Result<(), String> {
        step::check(self)
    }
}

impl Vector for TreeVector {
    fn name(&self) -> &str {
        &self.name
    }

    fn cites(&self) -> &[String] {
        &self.cites
    }

    fn check(&self) -> Result<(), String> {
        tree::check(self)
    }
}

/// Every vector of the files of a folder; `names` are those taken so far.
fn read<V: Vector>(folder: &Path, names: &mut BTreeSet<String>) -> Result<Vec<V>, LoadError> {
    let mut vectors = Vec::new();
    for path in yaml_files(folder)? {
        let text = fs::read_to_string(&path)
            .map_err(|source| LoadError::Read { path: path.clone(), source })?;
        let of_file: Vec<V> = serde_saphyr::from_str(&text)
            .map_err(|source| LoadError::Parse { path: path.clone(), source: Box::new(source) })?;
        for vector in &of_file {
            let unique = names.insert(vector.name().to_owned());
            let checked = match vector.check() {
                Ok(()) if !unique => Err("has a name that another vector has".to_owned()),
                Ok(()) if vector.cites().is_empty() => Err("cites no sentence".to_owned()),
                checked => checked,
            };
            checked.map_err(|problem| {
                let name = vector.name().to_owned();
                LoadError::Invalid { path: path.clone(), name, problem }
            })?;
        }
        vectors.extend(of_file);
    }
    Ok(vectors)
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, LoadError> {
    let of_folder = |source| LoadError::Read { path: folder.to_owned(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(of_folder)? {
        let path = entry.map_err(of_folder)?.path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
