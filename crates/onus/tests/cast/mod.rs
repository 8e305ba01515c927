//! Who acts in these tests: bodies made of pieces, callees with a script, services with a handler.

mod body;
mod callee;
#[cfg(feature = "hyper")]
mod loopback;
mod metrics;
mod service;

pub(crate) use body::{Broken, Piece, Pieces, read};
pub(crate) use callee::{Callee, Reply, Seen};
#[cfg(feature = "hyper")]
pub(crate) use loopback::{pass, paused_sockets, until};
pub(crate) use metrics::{Series, all_series, counted};
pub(crate) use service::{Client, Node, Served, ask, get, outcome, post, relay, said, serve};

/// Runs `future` on a clock that stands still unless everybody waits for it.
pub(crate) fn paused<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}
