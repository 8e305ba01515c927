//! The rules of one tape: whose turn it is to read, and what comes next.

use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::error::{NotReplayable, ReplayError};
use super::limits::ReplayLimits;
use super::record::Record;

/// What the attempts of one call share.
///
/// The caller's body is lent out to be polled, never polled under the lock; wakers, buffers and
/// that body are woken and dropped after it. So whatever such code does, also with this very tape,
/// it cannot deadlock, and an attempt that takes over never waits for a slow poll.
pub(super) struct Shared<B> {
    state: Mutex<State<B>>,
}

impl<B: Body> Shared<B> {
    pub(super) fn new(original: B, limits: &ReplayLimits) -> Self {
        let fits = original.size_hint().lower() <= limits.per_request() as u64;
        let state = State {
            turn: 0,
            reading: false,
            index: 0,
            read_bytes: 0,
            live: false,
            ahead: false,
            waker: None,
            record: fits.then(|| Record::new(limits)),
            keep: if fits { Keep::Recording } else { Keep::Stopped(NotReplayable::OverLimit) },
            touched: false,
            original: Original::Here(Box::pin(original)),
            stranded: None,
        };
        Self { state: Mutex::new(state) }
    }
}

impl<B> Shared<B> {
    /// Changes the state; what it puts into the leftovers is woken and dropped after the lock.
    pub(super) fn with<T>(&self, change: impl FnOnce(&mut State<B>, &mut Leftovers<B>) -> T) -> T {
        let mut leftovers = Leftovers::default();
        let result = change(&mut self.lock(), &mut leftovers);
        if let Some(waker) = leftovers.wake.take() {
            waker.wake();
        }
        result
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) struct State<B> {
    // The attempt that may read. A number of our own, because callers choose theirs freely.
    turn: u32,
    // The body of that attempt is alive.
    reading: bool,
    // The place of that attempt in the record; `live` once it has read all of it.
    index: usize,
    read_bytes: usize,
    live: bool,
    // That attempt reads for those after it: what cannot be kept is theirs.
    ahead: bool,
    waker: Option<Waker>,

    record: Option<Record>,
    keep: Keep,
    // Something of the original has been given to an attempt.
    touched: bool,

    original: Original<B>,
    // A frame that came for an attempt whose turn ended while it was polling the original.
    // Boxed, because it is rare and would make every tape larger.
    stranded: Option<Box<Frame<Bytes>>>,
}

impl<B: Body> State<B> {
    /// What the attempt `turn` does next.
    pub(super) fn next(
        &mut self,
        turn: u32,
        cx: &Context<'_>,
        leftovers: &mut Leftovers<B>,
    ) -> Next<B> {
        if turn != self.turn {
            return Next::Step(Step::Fail(ReplayError::Superseded));
        }
        if matches!(self.original, Original::Broken) {
            return Next::Step(Step::Fail(ReplayError::Broken));
        }
        if let Some(frame) = self.replay() {
            return Next::Step(self.hand_out(frame, leftovers));
        }
        if self.ahead && self.record.is_none() {
            return Next::Step(self.end(leftovers));
        }
        self.live = true;
        if let Some(frame) = self.stranded.take() {
            return Next::Step(self.deliver(*frame, leftovers));
        }
        // Asked before the body is taken, because it may panic.
        let hint = match &self.original {
            Original::Here(body) => body.size_hint(),
            Original::Lent(_) => return Next::Step(self.wait(cx, leftovers)),
            Original::Ended | Original::Broken => return Next::Step(self.end(leftovers)),
        };
        match std::mem::replace(&mut self.original, Original::Lent(hint)) {
            Original::Here(body) => Next::Poll(body),
            // Not reached: the body was here.
            Original::Lent(_) | Original::Ended | Original::Broken => {
                Next::Step(self.end(leftovers))
            }
        }
    }

    /// The size of what the attempt `turn` has still to read.
    ///
    /// It has no upper end while trailers are known to follow: a sender that knows the exact size
    /// stops there and cuts them off.
    pub(super) fn size_hint(&self, turn: u32) -> SizeHint {
        let mut hint = SizeHint::new();
        let rest = match &self.original {
            _ if turn != self.turn => return hint,
            Original::Here(body) => body.size_hint(),
            Original::Lent(hint) => *hint,
            Original::Ended => SizeHint::with_exact(0),
            Original::Broken => return hint,
        };
        let stranded = self.stranded.as_deref();
        let record = self.record.as_ref().filter(|_| !self.live);
        let known = record.map_or(0, |r| r.data_bytes() - self.read_bytes)
            + stranded.and_then(Frame::data_ref).map_or(0, Bytes::len);
        let trailers = record.is_some_and(|r| r.trailers().is_some())
            || stranded.is_some_and(Frame::is_trailers);

        hint.set_lower(rest.lower().saturating_add(known as u64));
        if let Some(upper) = rest.upper().filter(|_| !trailers) {
            hint.set_upper(upper.saturating_add(known as u64));
        }
        hint
    }

    /// Whether nothing is left to read for the attempt `turn`.
    pub(super) fn is_end_stream(&self, turn: u32) -> bool {
        let ended = match &self.original {
            Original::Here(body) => body.is_end_stream(),
            Original::Ended => true,
            Original::Lent(_) | Original::Broken => false,
        };
        turn == self.turn && ended && !self.has_kept()
    }

    /// Whether nothing of the caller's body is left to read.
    pub(super) fn is_read(&self) -> bool {
        match &self.original {
            Original::Here(body) => body.is_end_stream() || body.size_hint().exact() == Some(0),
            Original::Ended => true,
            Original::Lent(_) | Original::Broken => false,
        }
    }

    /// The digest of the data, when all of it is in the record.
    pub(super) fn digest(&self) -> Option<u64> {
        let complete = self.is_read();
        let stranded = self.stranded.as_deref().is_some_and(Frame::is_data);
        let record = self.record.as_ref().filter(|_| complete && !stranded)?;
        Some(record.digest())
    }
}

impl<B> State<B> {
    /// Whether another attempt would read the whole body.
    pub(super) fn replayable(&self) -> Result<(), NotReplayable> {
        match self.keep {
            // A body of any size can be sent as long as nothing of it was read.
            Keep::Stopped(reason) if self.touched => Err(reason),
            Keep::Stopped(_) | Keep::Recording | Keep::Released => Ok(()),
        }
    }

    /// Gives the turn to another attempt, which starts at the beginning.
    ///
    /// Asked and given in one step: a running attempt may pass the limit at any moment.
    pub(super) fn begin(
        &mut self,
        ahead: bool,
        leftovers: &mut Leftovers<B>,
    ) -> Result<u32, NotReplayable> {
        self.replayable()?;
        self.turn = self.turn.wrapping_add(1);
        self.reading = true;
        self.index = 0;
        self.read_bytes = 0;
        self.live = false;
        self.ahead = ahead;
        leftovers.wake = self.waker.take();
        Ok(self.turn)
    }

    /// Takes the original back from the attempt `turn`, to which it has given `polled`.
    pub(super) fn give_back(
        &mut self,
        turn: u32,
        body: Pin<Box<B>>,
        polled: Polled,
        cx: &Context<'_>,
        leftovers: &mut Leftovers<B>,
    ) -> Step {
        let (frame, ended) = match polled {
            Polled::Pending => (None, false),
            Polled::Frame { frame, last } => (Some(frame), last),
            Polled::End => (None, true),
        };
        if ended {
            self.original = Original::Ended;
            leftovers.original = Some(body);
        } else {
            self.original = Original::Here(body);
        }
        if turn != self.turn {
            // It belongs to the attempt whose turn it is.
            self.stranded = frame.map(Box::new);
            leftovers.wake = self.waker.take();
            self.sweep(leftovers);
            return Step::Fail(ReplayError::Superseded);
        }
        match frame {
            Some(frame) => self.deliver(frame, leftovers),
            None if ended => self.end(leftovers),
            None => self.wait(cx, leftovers),
        }
    }

    /// The original has failed and is gone.
    pub(super) fn broke(&mut self, leftovers: &mut Leftovers<B>) {
        self.original = Original::Broken;
        self.touched = true;
        self.stop(NotReplayable::Error, leftovers);
        leftovers.wake = self.waker.take();
    }

    /// The attempt `turn` has read everything, or its body is gone.
    pub(super) fn leave(&mut self, turn: u32, leftovers: &mut Leftovers<B>) {
        if turn == self.turn {
            self.reading = false;
            leftovers.waker = self.waker.take();
            self.sweep(leftovers);
        }
    }

    /// No attempt will follow: what the running one has read is not needed any more.
    pub(super) fn release(&mut self, leftovers: &mut Leftovers<B>) {
        self.keep = Keep::Released;
        self.sweep(leftovers);
        if let Some(record) = &mut self.record {
            if self.live {
                leftovers.record = self.record.take();
            } else {
                let read = 0..self.index;
                leftovers.pieces = read.filter_map(|index| record.take_piece(index)).collect();
            }
        }
    }

    /// The next frame of the record for the attempt whose turn it is.
    fn replay(&mut self) -> Option<Frame<Bytes>> {
        let record = self.record.as_mut().filter(|_| !self.live)?;
        let piece = match self.keep {
            Keep::Released => record.take_piece(self.index),
            Keep::Recording | Keep::Stopped(_) => record.piece(self.index),
        };
        if let Some(data) = piece {
            self.index += 1;
            self.read_bytes += data.len();
            return Some(Frame::data(data));
        }
        let trailers = record.trailers()?.clone();
        self.live = true;
        Some(Frame::trailers(trailers))
    }

    /// Keeps a frame of the original, if frames are kept, and hands it on.
    fn deliver(&mut self, frame: Frame<Bytes>, leftovers: &mut Leftovers<B>) -> Step {
        self.touched = true;
        if let (Keep::Recording, Some(record)) = (self.keep, &mut self.record) {
            let kept = match (frame.data_ref(), frame.trailers_ref()) {
                (Some(data), _) => record.push(data),
                (None, Some(trailers)) => record.push_trailers(trailers),
                // A kind of frame that this code does not know cannot be sent again.
                (None, None) => Err(NotReplayable::Error),
            };
            if let Err(reason) = kept {
                if self.ahead {
                    self.stranded = Some(Box::new(frame));
                    return self.end(leftovers);
                }
                self.stop(reason, leftovers);
            }
        }
        self.hand_out(frame, leftovers)
    }

    fn hand_out(&mut self, frame: Frame<Bytes>, leftovers: &mut Leftovers<B>) -> Step {
        let last = matches!(self.original, Original::Ended) && !self.has_kept();
        if last {
            self.leave(self.turn, leftovers);
        }
        Step::Deliver(frame, last)
    }

    fn end(&mut self, leftovers: &mut Leftovers<B>) -> Step {
        self.leave(self.turn, leftovers);
        Step::End
    }

    fn stop(&mut self, reason: NotReplayable, leftovers: &mut Leftovers<B>) {
        self.keep = Keep::Stopped(reason);
        leftovers.record = self.record.take();
    }

    fn wait(&mut self, cx: &Context<'_>, leftovers: &mut Leftovers<B>) -> Step {
        let known = self.waker.as_ref();
        if !known.is_some_and(|waker| waker.will_wake(cx.waker())) {
            leftovers.waker = self.waker.replace(cx.waker().clone());
        }
        Step::Wait
    }

    /// Lets go of everything when nobody reads and nobody can begin to.
    fn sweep(&mut self, leftovers: &mut Leftovers<B>) {
        if self.reading || (self.keep != Keep::Released && self.replayable().is_ok()) {
            return;
        }
        if let Some(record) = self.record.take() {
            leftovers.record = Some(record);
        }
        leftovers.frame = self.stranded.take();
        match std::mem::replace(&mut self.original, Original::Ended) {
            Original::Here(body) => leftovers.original = Some(body),
            elsewhere @ (Original::Lent(_) | Original::Ended | Original::Broken) => {
                self.original = elsewhere;
            }
        }
    }

    /// Whether frames that were already read from the original are left for the attempt.
    fn has_kept(&self) -> bool {
        let record = self.record.as_ref().filter(|_| !self.live);
        self.stranded.is_some()
            || record.is_some_and(|r| r.has_piece(self.index) || r.trailers().is_some())
    }
}

/// Where the caller's body is.
enum Original<B> {
    Here(Pin<Box<B>>),
    /// An attempt is polling it; it had this much to give before.
    Lent(SizeHint),
    Ended,
    Broken,
}

/// What becomes of the frames that are read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Recording,
    Stopped(NotReplayable),
    Released,
}

/// What an attempt does next.
pub(super) enum Next<B> {
    /// Poll the caller's body, outside the lock, and give it back.
    Poll(Pin<Box<B>>),
    Step(Step),
}

/// What whoever polls an attempt gets.
pub(super) enum Step {
    /// This frame; nothing follows when the flag is set.
    Deliver(Frame<Bytes>, bool),
    Wait,
    End,
    Fail(ReplayError),
}

/// What the caller's body gave when it was polled.
pub(super) enum Polled {
    Pending,
    Frame { frame: Frame<Bytes>, last: bool },
    End,
}

/// What a change of the state leaves to be woken and dropped after the lock.
pub(super) struct Leftovers<B> {
    wake: Option<Waker>,
    waker: Option<Waker>,
    record: Option<Record>,
    pieces: Vec<Bytes>,
    frame: Option<Box<Frame<Bytes>>>,
    original: Option<Pin<Box<B>>>,
}

impl<B> Default for Leftovers<B> {
    fn default() -> Self {
        Self {
            wake: None,
            waker: None,
            record: None,
            pieces: Vec::new(),
            frame: None,
            original: None,
        }
    }
}
