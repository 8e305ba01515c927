//! Versions of the layout: a file of an earlier one is brought up to date in one transaction, one of
//! a later version is left alone.

use std::path::Path;

use redb::{
    Database, ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction,
};

use super::{
    AUDIT, EDGES, INSTANCES, LOG, META, ORDERS, OVERRIDES, PROCEDURES, StoreError, WINDOWS,
};
use crate::clock::Millis;
use crate::codec::Writer;

type Step = fn(&WriteTransaction) -> Result<(), redb::Error>;

/// Each step makes the next version of the one before it, beginning with version 1.
const STEPS: [Step; 1] = [failing_since];

/// The version that this program writes.
pub(super) const VERSION: u64 = STEPS.len() as u64 + 1;

/// Refuses a file that a later version of Onus has written.
pub(super) fn check(transaction: &ReadTransaction, path: &Path) -> Result<(), StoreError> {
    let broken = |source: redb::Error| StoreError::Database {
        path: path.to_owned(),
        source: Box::new(source),
    };
    let meta = match transaction.open_table(META) {
        Ok(meta) => meta,
        // The file has just been made.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        Err(error) => return Err(broken(error.into())),
    };
    let version = meta.get("version").map_err(|error| broken(error.into()))?;
    match version.map(|version| version.value()) {
        Some(found) if found > VERSION => Err(StoreError::Version { path: path.to_owned(), found }),
        Some(_) | None => Ok(()),
    }
}

/// Makes the tables of a new file, and brings an earlier one up to date.
pub(super) fn prepare(database: &Database, now: Millis) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        let mut meta = transaction.open_table(META)?;
        let found = meta.get("version")?.map(|version| version.value());
        if found.is_none() {
            meta.insert("tick", now.0)?;
            meta.insert("tick-before", now.0)?;
        }
        transaction.open_table(LOG)?;
        transaction.open_table(EDGES)?;
        transaction.open_table(PROCEDURES)?;
        transaction.open_table(INSTANCES)?;
        transaction.open_table(WINDOWS)?;
        transaction.open_table(OVERRIDES)?;
        transaction.open_table(ORDERS)?;
        transaction.open_table(AUDIT)?;
        if let Some(found) = found.filter(|&found| found < VERSION) {
            let done = usize::try_from(found).unwrap_or(usize::MAX).saturating_sub(1);
            for step in STEPS.iter().skip(done) {
                step(&transaction)?;
            }
            tracing::info!(from = found, to = VERSION, "onus analysis: the store is up to date");
        }
        if found != Some(VERSION) {
            meta.insert("version", VERSION)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

/// Version 2 keeps since when edges and procedures fail; nothing says it of what there is.
fn failing_since(transaction: &WriteTransaction) -> Result<(), redb::Error> {
    let nothing = Writer::default().number(0).finish();
    append(transaction, EDGES, &nothing)?;
    append(transaction, PROCEDURES, &nothing)
}

/// Puts the same at the end of all rows.
fn append(
    transaction: &WriteTransaction,
    rows: TableDefinition<'_, u32, &[u8]>,
    end: &[u8],
) -> Result<(), redb::Error> {
    let mut table = transaction.open_table(rows)?;
    let ids: Result<Vec<u32>, redb::Error> = table.iter()?.map(|row| Ok(row?.0.value())).collect();
    for id in ids? {
        let row = table.get(id)?.map(|row| [row.value(), end].concat());
        if let Some(row) = row {
            table.insert(id, row.as_slice())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use onus_api::{
        EdgeCounts, EdgeDelta, EdgePolicyFacts, ProcedureCounts, ProcedureDelta, Report,
        ServiceFacts,
    };

    use super::super::{Store, file_in};
    use super::*;
    use crate::book::Book;
    use crate::config::Limits;

    const NOW: Millis = Millis(60_000_000);

    /// A folder of its own, gone with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("onus-analysis-{}-{name}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::create_dir_all(&path).expect("the folder is made");
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn report(sequence: u64) -> Report {
        Report {
            schema_version: 1,
            service: "checkout".to_owned(),
            instance: "1".to_owned(),
            sequence,
            at: NOW.0,
            facts: ServiceFacts::default(),
            edges: vec![EdgeDelta {
                caller_procedure: "GET /".to_owned(),
                callee: "payments".to_owned(),
                procedure: "/pay".to_owned(),
                policy: EdgePolicyFacts::default(),
                counts: EdgeCounts { calls_ok: 7, ..EdgeCounts::default() },
            }],
            procedures: vec![ProcedureDelta {
                procedure: "GET /".to_owned(),
                counts: ProcedureCounts { ok: 7, ..ProcedureCounts::default() },
            }],
        }
    }

    fn open(folder: &Folder) -> Result<(Store, Book), StoreError> {
        Store::open(&folder.0, Limits::default(), NOW)
    }

    /// A store with a checkpoint of one report, and another in its log.
    fn filled(folder: &Folder) {
        let (mut store, mut book) = open(folder).expect("it is opened");
        let texts = [1, 2].map(|number| serde_json::to_vec(&report(number)).expect("it is JSON"));
        store.log([(NOW, &*texts[0])].into_iter()).expect("it is stored");
        book.apply(&report(1), NOW);
        store.checkpoint(&book, NOW).expect("it is written");
        store.log([(NOW, &*texts[1])].into_iter()).expect("it is stored");
    }

    fn change(folder: &Folder, change: impl FnOnce(&WriteTransaction)) {
        let database = Database::open(file_in(&folder.0)).expect("it is opened");
        let transaction = database.begin_write().expect("it is written to");
        change(&transaction);
        transaction.commit().expect("it is written");
    }

    fn set_version(transaction: &WriteTransaction, version: u64) {
        let mut meta = transaction.open_table(META).expect("it is there");
        meta.insert("version", version).expect("it is written");
    }

    /// Rows of version 1 end before what version 2 has added, which is zero here.
    fn shorten(transaction: &WriteTransaction, rows: TableDefinition<'_, u32, &[u8]>) {
        let mut table = transaction.open_table(rows).expect("it is there");
        let row = table.get(0).expect("it is read").expect("there is one").value().to_vec();
        let (last, rest) = row.split_last().expect("it is not empty");
        assert_eq!(*last, 0);
        table.insert(0, rest).expect("it is written");
    }

    #[test]
    fn a_file_of_an_earlier_version_is_brought_up_to_date() {
        let folder = Folder::new("earlier");
        filled(&folder);
        change(&folder, |transaction| {
            shorten(transaction, EDGES);
            shorten(transaction, PROCEDURES);
            set_version(transaction, 1);
        });
        for _ in 0..2 {
            let (store, book) = open(&folder).unwrap();
            let edge = book.edges().next().unwrap();
            assert_eq!((edge.counts.calls_ok, edge.failing), (14, None));
            assert_eq!(book.procedures()[0].counts.ok, 14);
            assert_eq!(book.standing("checkout", "1"), Some((2, 0)));
            let read = store.snapshot().unwrap();
            let version = read.open_table(META).unwrap().get("version").unwrap().unwrap().value();
            assert_eq!(version, VERSION);
        }
    }

    #[test]
    fn a_file_of_a_later_version_is_not_touched() {
        let folder = Folder::new("later");
        filled(&folder);
        change(&folder, |transaction| set_version(transaction, VERSION + 1));
        let before = fs::read(file_in(&folder.0)).unwrap();
        let error = open(&folder).unwrap_err();
        assert!(matches!(error, StoreError::Version { found, .. } if found == VERSION + 1));
        assert!(error.is_mistake() && error.to_string().contains("run the onus that wrote it"));
        assert!(fs::read(file_in(&folder.0)).unwrap() == before, "not a byte is another");
    }

    #[test]
    fn a_file_that_is_cut_off_or_empty_is_damaged_or_new() {
        let folder = Folder::new("cut");
        filled(&folder);
        let whole = fs::read(file_in(&folder.0)).unwrap();
        for part in [1, 100, 4096, whole.len() / 2, whole.len() - 1] {
            fs::write(file_in(&folder.0), &whole[..part]).unwrap();
            let error = open(&folder).unwrap_err();
            assert!(!error.is_mistake(), "{part}: {error}");
        }
        fs::write(file_in(&folder.0), &whole).unwrap();
        assert!(open(&folder).is_ok());
    }

    #[test]
    fn a_byte_that_is_another_is_found_or_was_of_no_use() {
        let folder = Folder::new("flipped");
        filled(&folder);
        let whole = fs::read(file_in(&folder.0)).unwrap();
        let names = (0..whole.len()).filter(|&at| whole[at..].starts_with(b"payments"));
        let some = (0..whole.len()).filter(|&at| whole[at] != 0).step_by(4_000);
        let mut found = 0;
        for at in names.chain(some) {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            fs::write(file_in(&folder.0), &flipped).unwrap();
            match open(&folder) {
                Ok((_, book)) => {
                    let edge = book.edges().next().unwrap();
                    assert_eq!(edge.counts.calls_ok, 14, "the byte at {at}");
                    assert_eq!(book.standing("checkout", "1"), Some((2, 0)), "the byte at {at}");
                }
                Err(error) => {
                    assert!(!error.is_mistake(), "the byte at {at}: {error}");
                    found += 1;
                }
            }
        }
        assert!(found > 0, "the row of the edge, at least");
    }

    #[test]
    fn a_copy_made_under_way_is_the_store_as_it_was() {
        let folder = Folder::new("copy");
        filled(&folder);
        let (mut store, _) = open(&folder).unwrap();
        let snapshot = store.snapshot().unwrap();
        let text = serde_json::to_vec(&report(3)).unwrap();
        store.log([(NOW, &*text)].into_iter()).unwrap();
        let other = Folder::new("copied");
        let copied = super::super::Copied::of(&snapshot, &folder.0).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &copied.file, &mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, copied.length);
        fs::write(file_in(&other.0), bytes).unwrap();
        drop(copied);
        let left: Vec<_> = fs::read_dir(&folder.0).unwrap().collect();
        assert_eq!(left.len(), 1, "nothing of the copy is left: {left:?}");
        let (_, book) = open(&other).unwrap();
        assert_eq!(book.standing("checkout", "1"), Some((2, 0)));
        assert_eq!(book.edges().next().unwrap().counts.calls_ok, 14);
    }
}
