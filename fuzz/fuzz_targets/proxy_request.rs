//! Any head of a request: it is refused, or passed on with one meaning and without the fields of its
//! connection.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = onus_proxy::fuzz::request(data);
});
