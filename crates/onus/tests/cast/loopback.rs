//! Tasks that talk over loopback: their clock, and waiting for what they bring about.

use std::time::Duration;

/// Runs `future`, whose tasks talk over loopback, on a clock that moves when it is told to:
/// by [`pass`].
///
/// Bytes on their way do not keep tokio's paused clock from running ahead of them; work on another
/// thread does.
pub(crate) fn paused_sockets<F: Future>(future: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (working, work) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || work.recv());
        let output = future.await;
        drop(working);
        output
    })
}

/// Lets time pass.
pub(crate) async fn pass(time: Duration) {
    tokio::time::advance(time).await;
}

/// Waits until `holds` does. On a paused clock time stands still meanwhile.
pub(crate) async fn until(holds: impl Fn() -> bool) {
    for _ in 0..TURNS_MAX {
        if holds() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it does not come to hold");
}

/// Some ten seconds' worth.
const TURNS_MAX: usize = 5_000_000;
