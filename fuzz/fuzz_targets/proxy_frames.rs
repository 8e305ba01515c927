//! Any bytes of an HTTP/2 connection: a flood of frames is one however they are cut.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((&length, bytes)) = data.split_first() else { return };
    let preface = [&[0; 24][..], bytes].concat();
    let _ = onus_proxy::fuzz::frames(&preface, length.into());
});
