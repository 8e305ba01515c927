//! Any rows below the header of a table.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_traces::Format;

fuzz_target!(|data: &[u8]| {
    let table = [b"t,s,p,pod,k,e,c,b\n", data].concat();
    onus_fuzz::dump(&table, Format::Table);
    onus_fuzz::dump(data, Format::Table);
});
