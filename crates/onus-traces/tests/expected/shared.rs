//! The folder of dumps that others published, which is no part of the project.

use std::fs;
use std::path::{Path, PathBuf};

/// A row of a table.
pub(crate) type Row = Vec<String>;

/// One dump with what is expected of it.
pub(crate) struct Shared {
    folder: PathBuf,
}

impl Shared {
    /// The folder `name`, in `ONUS_DATA` or beside the project. Says so where it is missing.
    #[expect(clippy::print_stdout, reason = "whoever runs the tests reads what was skipped")]
    pub(crate) fn open(name: &str) -> Option<Self> {
        let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
        let data = std::env::var_os("ONUS_DATA").map_or(beside, PathBuf::from);
        let folder = data.join("traces").join(name);
        if !folder.is_dir() {
            println!("skipped: there is no folder {} (ONUS_DATA names another)", folder.display());
            return None;
        }
        Some(Self { folder })
    }

    /// The files of the dump, in the order of their names.
    pub(crate) fn dumps(&self) -> Vec<(String, Vec<u8>)> {
        let files = fs::read_dir(&self.folder).expect("the folder can be read");
        let mut dumps = Vec::new();
        for file in files {
            let path = file.expect("the folder can be read").path();
            let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            let table = name.ends_with("_trace.csv");
            if name.ends_with(".json") || table {
                dumps.push((name, fs::read(&path).expect("the dump can be read")));
            }
        }
        dumps.sort();
        assert!(!dumps.is_empty(), "{}", self.folder.display());
        dumps
    }

    /// A file of the folder, if there is one.
    pub(crate) fn file(&self, name: &str) -> Option<Vec<u8>> {
        let path = self.folder.join(name);
        path.exists().then(|| fs::read(path).expect("the file can be read"))
    }

    /// Compares all rows with those of a file of expected ones, whose order is its own.
    pub(crate) fn check(&self, file: &str, rows: &[Row]) {
        let text = String::from_utf8(self.file(file).expect("it is there")).expect("it is text");
        let split = |line: &str| line.split(',').map(ToOwned::to_owned).collect();
        let mut expected: Vec<Row> = text.lines().skip(1).map(split).collect();
        let mut rows = rows.to_vec();
        expected.sort();
        rows.sort();
        let missing: Vec<_> = expected.iter().filter(|row| !rows.contains(row)).collect();
        let surplus: Vec<_> = rows.iter().filter(|row| !expected.contains(row)).collect();
        assert!(
            missing.is_empty() && surplus.is_empty() && rows.len() == expected.len(),
            "{file}: expected\n{missing:#?}\nfound\n{surplus:#?}"
        );
    }
}
