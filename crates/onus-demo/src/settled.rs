//! Whether anybody is still at work.
//!
//! A handler may go on when its caller has gone, so the last answer is not the end of the work. A
//! caller is at work until its call has ended: while a request is on its way, somebody is counted.

use tokio::sync::watch;

/// How many handlers of a cluster are at work.
#[derive(Clone, Debug)]
pub(crate) struct AtWork(watch::Sender<usize>);

/// One handler at work, until it is dropped.
#[derive(Debug)]
pub(crate) struct Working(AtWork);

impl AtWork {
    pub(crate) fn nobody() -> Self {
        Self(watch::Sender::new(0))
    }

    pub(crate) fn start(&self) -> Working {
        self.0.send_modify(|count| *count += 1);
        Working(self.clone())
    }

    /// Ready when nobody is at work.
    pub(crate) async fn settled(&self) {
        // It fails when the sender is gone, and there is one in `self`.
        let _ = self.0.subscribe().wait_for(|&count| count == 0).await;
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}
