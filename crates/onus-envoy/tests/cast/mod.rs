//! What plays Envoy.

mod stream;

pub(crate) use stream::Played;
