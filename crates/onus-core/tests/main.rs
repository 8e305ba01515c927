//! The integration tests of the core, in one binary: enumerations against oracles that were
//! written from the text of the protocol in another shape, and the moments that no verdict shows.

mod calls;
mod oracle;
