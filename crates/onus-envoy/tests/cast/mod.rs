//! What plays Envoy.

mod stream;
mod table;

pub(crate) use stream::Played;
pub(crate) use table::Table;
