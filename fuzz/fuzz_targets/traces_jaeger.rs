//! Any bytes as a dump in Jaeger's JSON.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_traces::Format;

fuzz_target!(|data: &[u8]| onus_fuzz::dump(data, Format::Jaeger));
