//! Any text as the configuration of a proxy: it is refused with a reason, or means the same when it
//! is shown and read again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_proxy::{ConfigFile, ProxyConfig};

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(file) = ConfigFile::parse(text) else { return };
    let shown = file.show().expect("what was read can be shown");
    let again = ConfigFile::parse(&shown).expect("what is shown can be read");
    assert_eq!(again.show().expect("it can be shown"), shown);
    // What is shown has other lines.
    let refused = |file| {
        let error = ProxyConfig::new(file).err()?.to_string();
        Some(error.rsplit_once(" (line").map_or(error.clone(), |(error, _)| error.to_owned()))
    };
    assert_eq!(refused(file), refused(again));
});
