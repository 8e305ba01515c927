//! The integration tests of the core, in one binary: enumerations against oracles that were
//! written from the text of the protocol in another shape, and property tests.

mod oracle;
