//! The switch file, with paused time and a real file.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Duration;

use onus::{Mode, Onus};

use crate::cast::paused;

const SECOND: Duration = Duration::from_secs(1);

/// A file of this test alone, gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let file = format!("onus-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    fn says(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_service_follows_its_switch_file_within_two_seconds() {
    // [shield-4] [fault-4]
    paused(async {
        let file = Scratch::new("follows");
        let onus = Onus::builder("checkout").enforce().build().unwrap();
        tokio::spawn(onus.watch_switch_file(&file.0));
        let long_text = "#".repeat(70_000);
        for (text, mode) in [
            ("", Mode::ENFORCE),
            ("mode: off\nwho: alice\nwhy: incident", Mode::Off),
            // What cannot be meant or read leaves in force what was.
            ("mode: oof", Mode::Off),
            (&long_text, Mode::Off),
            ("mode: observe", Mode::Observe),
        ] {
            file.says(text);
            tokio::time::sleep(Duration::from_secs(2)).await;
            assert_eq!(onus.mode(), mode, "{text:.20}");
        }
        fs::remove_file(&file.0).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(onus.mode(), Mode::ENFORCE, "no file says nothing");
    });
}

#[test]
fn a_shield_is_not_renewed_by_a_reading_that_failed_in_between() {
    // [shield-2]
    paused(async {
        let file = Scratch::new("renewed");
        file.says("shield: 60s");
        let written = fs::metadata(&file.0).unwrap().modified().unwrap() - 40 * SECOND;
        let date = |time| File::options().write(true).open(&file.0).unwrap().set_modified(time);
        date(written).unwrap();
        let onus = Onus::builder("checkout").build().unwrap();
        tokio::spawn(onus.watch_switch_file(&file.0));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let left = || {
            let all = crate::cast::all_series(&onus);
            all.iter().find(|series| series.family == "onus_shield_seconds_left").unwrap().value
        };
        let before = left();
        assert!((15.0..=20.0).contains(&before), "{before} s: it was written 40 s ago");
        file.says(&"#".repeat(70_000));
        tokio::time::sleep(Duration::from_secs(2)).await;
        file.says("shield: 60s");
        date(written).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(left() <= before, "{} s after {before} s", left());
    });
}

#[test]
fn a_watch_ends_with_its_service() {
    paused(async {
        let file = Scratch::new("ends");
        let onus = Onus::builder("checkout").build().unwrap();
        let watch = tokio::spawn(onus.watch_switch_file(&file.0));
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert!(!watch.is_finished());
        drop(onus);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(watch.is_finished());
    });
}
