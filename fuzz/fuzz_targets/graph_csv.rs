//! Any text as a list of edges in CSV.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_graph::ListFormat;

fuzz_target!(|data: &[u8]| onus_fuzz::list(data, ListFormat::Csv));
