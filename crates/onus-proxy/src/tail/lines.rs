//! The lines for one reader, as the body of an answer: JSON, one object a line.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::{AccessLog, Line, Reader};

/// What one reader reads, until it goes.
pub(crate) struct Lines {
    log: Arc<AccessLog>,
    reader: Arc<Reader>,
    lines: Receiver<Arc<Line>>,
    /// Made when it is first polled: on a runtime.
    beat: Option<Interval>,
}

impl Lines {
    pub(super) fn new(
        log: Arc<AccessLog>,
        reader: Arc<Reader>,
        lines: Receiver<Arc<Line>>,
    ) -> Self {
        Self { log, reader, lines, beat: None }
    }
}

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |text: String| Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        let missed = self.reader.missed.swap(0, Ordering::Relaxed);
        if missed > 0 {
            return frame(format!("{{\"missed\":{missed}}}\n"));
        }
        if let Poll::Ready(Some(line)) = self.lines.poll_recv(cx) {
            // Text and numbers are always JSON.
            let mut text = serde_json::to_string(&*line).unwrap_or_default();
            text.push('\n');
            return frame(text);
        }
        let beat = self.beat.get_or_insert_with(|| {
            let mut beat = interval_at(Instant::now() + BEAT, BEAT);
            beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
            beat
        });
        if beat.poll_tick(cx).is_ready() {
            return frame("\n".to_owned());
        }
        Poll::Pending
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        self.log.leave(&self.reader);
    }
}

/// An empty line where nothing happens: who has gone without a word is noticed by it.
const BEAT: Duration = Duration::from_secs(15);
