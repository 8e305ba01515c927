//! Any bytes as a file of retry configuration.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_retry_config::Import;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let mut import = Import::default();
    import.read("a.yaml", &text);
    let config = import.finish();
    for policy in &config.policies {
        assert!(policy.attempts.most() != Some(0));
        let _ = policy.repeated_writes();
    }
    let lines = text.lines().count() as u64;
    for unread in &config.unread {
        assert!((1..=lines.max(1) + 1).contains(&unread.place.line), "{unread}");
    }
});
