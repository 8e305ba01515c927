//! Any text as a service graph of Isotope.

#![no_main]

use libfuzzer_sys::fuzz_target;
use onus_graph::ListFormat;

fuzz_target!(|data: &[u8]| onus_fuzz::list(data, ListFormat::Isotope));
