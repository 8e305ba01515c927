//! Any query of a reader of the access log: it is refused, or says which lines are wanted.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(query) = std::str::from_utf8(data) else { return };
    let _ = onus_proxy::fuzz::tail_query(query);
});
