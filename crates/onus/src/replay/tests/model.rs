//! What a tape should do, said as arithmetic on positions in the caller's body.
//!
//! The model knows no locks, loans, turns or buffers: it knows how many bytes were taken from the
//! caller's body, how many each attempt has, and who may read.

use bytes::Bytes;
use http::HeaderMap;
use http_body::SizeHint;

use super::super::{NotReplayable, ReplayError};
use super::script::{Event, Hint};

/// A body, what it says about itself, and the limits for it.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) events: Vec<Event>,
    pub(super) hint: Hint,
    pub(super) tells_end: bool,
    pub(super) limit: usize,
    pub(super) total: usize,
}

impl Setup {
    fn data(&self) -> Vec<u8> {
        let pieces = self.events.iter().map(|event| match event {
            Event::Data(data) => &data[..],
            Event::Trailers(_) | Event::Fail | Event::Gate | Event::Yield | Event::Panic => &[],
        });
        pieces.flatten().copied().collect()
    }

    fn trailers(&self) -> Option<HeaderMap> {
        self.events.iter().find_map(|event| match event {
            Event::Trailers(map) => Some(map.clone()),
            Event::Data(_) | Event::Fail | Event::Gate | Event::Yield | Event::Panic => None,
        })
    }
}

/// What a poll gives.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Outcome {
    /// One or more bytes, which lie at the attempt's place.
    Replayed,
    /// Exactly these bytes.
    Data(Bytes),
    Trailers(HeaderMap),
    End,
    Pending,
    Script,
    Failed(ReplayError),
}

#[derive(Clone, Debug)]
pub(super) struct Model {
    pub(super) setup: Setup,
    data: Vec<u8>,
    // What the caller's body has still to do.
    rest: Vec<Event>,
    taken: usize,
    trailers_taken: bool,
    original: Original,
    stranded: Option<Event>,
    keep: Keep,
    touched: bool,
    held: usize,
    pub(super) attempts: Vec<Progress>,
    turn: Option<usize>,
}

/// What one attempt has.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    bytes: usize,
    trailers: bool,
    pub(super) stop: Option<Stop>,
    pub(super) dropped: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stop {
    Whole,
    Cut,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Original {
    Open,
    Ended,
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Keep {
    Recording,
    Stopped(NotReplayable),
    Released,
}

impl Model {
    pub(super) fn new(setup: Setup) -> Self {
        let data = setup.data();
        let lower = match setup.hint {
            Hint::Exact | Hint::AtLeast => data.len(),
            Hint::AtMost | Hint::Unknown => 0,
        };
        Self {
            rest: setup.events.clone(),
            keep: if lower <= setup.limit || setup.events.is_empty() {
                Keep::Recording
            } else {
                Keep::Stopped(NotReplayable::OverLimit)
            },
            original: if setup.events.is_empty() && setup.tells_end {
                Original::Ended
            } else {
                Original::Open
            },
            data,
            taken: 0,
            trailers_taken: false,
            stranded: None,
            touched: false,
            held: 0,
            attempts: Vec::new(),
            turn: None,
            setup,
        }
    }

    pub(super) fn replayable(&self) -> Result<(), NotReplayable> {
        match self.keep {
            Keep::Stopped(reason) if self.touched => Err(reason),
            Keep::Stopped(_) | Keep::Recording | Keep::Released => Ok(()),
        }
    }

    /// An attempt starts.
    pub(super) fn begin(&mut self) {
        let mut progress = Progress::default();
        if self.setup.events.is_empty() && self.setup.tells_end {
            progress.stop = Some(Stop::Whole);
        }
        self.turn = Some(self.attempts.len());
        self.attempts.push(progress);
    }

    pub(super) fn release(&mut self) {
        self.keep = Keep::Released;
    }

    /// The script's gate was opened.
    pub(super) fn open(&mut self) {
        if self.rest.first() == Some(&Event::Gate) {
            self.rest.remove(0);
        }
    }

    /// Whether a poll of attempt `k` reaches the caller's body.
    pub(super) fn polls_original(&self, k: usize) -> bool {
        self.attempts[k].stop.is_none()
            && self.turn == Some(k)
            && self.original == Original::Open
            && self.stranded.is_none()
            && self.attempts[k].bytes == self.taken
    }

    /// What a poll of attempt `k` must give; `lent` while another poll is inside the original.
    pub(super) fn expect(&self, k: usize, lent: bool) -> Outcome {
        let progress = &self.attempts[k];
        if progress.stop.is_some() {
            return Outcome::End;
        }
        if self.turn != Some(k) {
            return Outcome::Failed(ReplayError::Superseded);
        }
        if self.original == Original::Broken {
            return Outcome::Failed(ReplayError::Broken);
        }
        if progress.bytes < self.taken {
            return Outcome::Replayed;
        }
        if self.trailers_taken {
            return self.trailers();
        }
        match (&self.stranded, self.rest.first()) {
            (Some(event), _) => self.outcome(event),
            (None, _) if lent => Outcome::Pending,
            (None, _) if self.original == Original::Ended => Outcome::End,
            (None, Some(event)) => self.outcome(event),
            (None, None) => Outcome::End,
        }
    }

    /// A poll of attempt `k` gave `outcome`, with `bytes` of data.
    pub(super) fn polled(&mut self, k: usize, outcome: &Outcome, bytes: usize) {
        match outcome {
            Outcome::Replayed => self.attempts[k].bytes += bytes,
            Outcome::Trailers(_) if self.trailers_taken => self.attempts[k].trailers = true,
            Outcome::Data(_) | Outcome::Trailers(_) => {
                let event = match self.stranded.take() {
                    Some(event) => event,
                    None => self.take_event(),
                };
                self.deliver(k, &event);
            }
            Outcome::Pending => {
                let yields = self.rest.first() == Some(&Event::Yield);
                if yields && self.polls_original(k) {
                    self.rest.remove(0);
                }
            }
            Outcome::End => {
                if self.attempts[k].stop.is_none() && self.polls_original(k) {
                    self.original = Original::Ended;
                }
            }
            Outcome::Script => {
                self.rest.remove(0);
                self.break_off();
            }
            Outcome::Failed(_) => {}
        }
        let whole = self.attempts[k].bytes == self.data.len()
            && self.attempts[k].trailers == self.setup.trailers().is_some()
            && self.original == Original::Ended;
        let progress = &mut self.attempts[k];
        match outcome {
            Outcome::Script | Outcome::Failed(_) => {
                progress.stop.get_or_insert(Stop::Cut);
            }
            Outcome::Replayed
            | Outcome::Data(_)
            | Outcome::Trailers(_)
            | Outcome::End
            | Outcome::Pending => {
                if whole && progress.stop.is_none() && self.stranded.is_none() {
                    progress.stop = Some(Stop::Whole);
                }
            }
        }
    }

    /// The caller's body was polled by attempt `k`, whose turn ended meanwhile.
    pub(super) fn polled_too_late(&mut self, k: usize) -> Outcome {
        self.attempts[k].stop = Some(Stop::Cut);
        match self.rest.first() {
            Some(Event::Data(_) | Event::Trailers(_)) => {
                let event = self.take_event();
                self.stranded = Some(event);
            }
            Some(Event::Yield) => drop(self.rest.remove(0)),
            Some(Event::Fail) => {
                self.rest.remove(0);
                self.break_off();
                return Outcome::Script;
            }
            Some(Event::Gate | Event::Panic) => {}
            None => self.original = Original::Ended,
        }
        Outcome::Failed(ReplayError::Superseded)
    }

    /// Bytes that the tape must hold, and no more.
    pub(super) fn in_use(&self) -> usize {
        match (self.keep, self.reads()) {
            (Keep::Recording, _) => self.held,
            (Keep::Stopped(_), _) | (Keep::Released, None) => 0,
            // What the running attempt has not read yet.
            (Keep::Released, Some(_)) if self.original == Original::Broken => 0,
            (Keep::Released, Some(progress)) => {
                let trailers = if self.trailers_taken { TRAILER } else { 0 };
                self.held.min(self.taken - progress.bytes + trailers)
            }
        }
    }

    /// Whether the caller's body is still needed.
    pub(super) fn needs_original(&self) -> bool {
        let another = self.keep != Keep::Released && self.replayable().is_ok();
        self.original == Original::Open && (another || self.reads().is_some())
    }

    /// The attempt that is reading.
    fn reads(&self) -> Option<&Progress> {
        let progress = &self.attempts[self.turn?];
        (!progress.dropped && progress.stop.is_none()).then_some(progress)
    }

    /// Whether the digest is known: all data is kept.
    pub(super) fn knows_digest(&self) -> bool {
        let tells = match self.setup.hint {
            Hint::Exact => self.rest.iter().all(|event| event.len() == 0),
            Hint::AtLeast | Hint::AtMost | Hint::Unknown => false,
        };
        let ended = match self.original {
            Original::Ended => true,
            Original::Open => tells || (self.rest.is_empty() && self.setup.tells_end),
            Original::Broken => false,
        };
        let stranded = matches!(self.stranded, Some(Event::Data(_)));
        self.keep == Keep::Recording && ended && !stranded
    }

    pub(super) fn data(&self) -> &[u8] {
        &self.data
    }

    /// The bytes at the place of attempt `k`.
    pub(super) fn data_from(&self, k: usize) -> &[u8] {
        &self.data[self.attempts[k].bytes..]
    }

    pub(super) fn taken_from(&self, k: usize) -> usize {
        self.taken - self.attempts[k].bytes
    }

    /// Checks what attempt `k` says of itself.
    pub(super) fn check_size(&self, k: usize, hint: SizeHint, is_end_stream: bool) {
        let progress = &self.attempts[k];
        let rest = (self.data.len() - progress.bytes) as u64;
        match progress.stop {
            Some(Stop::Whole) => {
                assert_eq!((hint.exact(), is_end_stream), (Some(0), true));
                return;
            }
            Some(Stop::Cut) => {
                assert!(!is_end_stream && hint.lower() == 0 && hint.upper().is_none());
                return;
            }
            None => {}
        }
        if self.turn != Some(k) || self.original == Original::Broken {
            assert!(!is_end_stream && hint.lower() == 0 && hint.upper().is_none());
            return;
        }
        assert!(hint.lower() <= rest, "{hint:?}, {rest} bytes follow");
        assert!(hint.upper().is_none_or(|upper| upper >= rest), "{hint:?}, {rest}");
        // Ended as far as the caller's body tells, and nothing of it is left for this attempt.
        let stranded_trailers = matches!(self.stranded, Some(Event::Trailers(_)));
        let trailers_known = self.trailers_taken || stranded_trailers;
        let open = self.original == Original::Open && !stranded_trailers;
        let ended = !open || (self.rest.is_empty() && self.setup.tells_end);
        assert_eq!(is_end_stream, ended && rest == 0 && !trailers_known && self.stranded.is_none());
        if trailers_known {
            assert_eq!(hint.exact(), None, "would cut the trailers off");
        } else if self.setup.hint == Hint::Exact || !open {
            assert_eq!(hint.exact(), Some(rest));
        } else if self.setup.hint == Hint::Unknown {
            assert_eq!(hint.exact(), None);
        }
    }

    fn trailers(&self) -> Outcome {
        self.setup.trailers().map_or(Outcome::End, Outcome::Trailers)
    }

    fn outcome(&self, event: &Event) -> Outcome {
        match event {
            Event::Data(data) => Outcome::Data(data.clone()),
            Event::Trailers(map) => Outcome::Trailers(map.clone()),
            Event::Fail => Outcome::Script,
            Event::Gate | Event::Yield => Outcome::Pending,
            Event::Panic => unreachable!("not in the machine"),
        }
    }

    fn take_event(&mut self) -> Event {
        let event = self.rest.remove(0);
        let told = self.rest.is_empty() && self.setup.tells_end;
        if told || matches!(event, Event::Trailers(_)) {
            self.original = Original::Ended;
        }
        event
    }

    fn deliver(&mut self, k: usize, event: &Event) {
        self.touched = true;
        let weight = match event {
            Event::Data(data) => {
                self.taken += data.len();
                self.attempts[k].bytes += data.len();
                data.len()
            }
            Event::Trailers(_) => {
                self.attempts[k].trailers = true;
                self.trailers_taken = true;
                TRAILER
            }
            Event::Fail | Event::Gate | Event::Yield | Event::Panic => 0,
        };
        if self.keep == Keep::Recording {
            if self.held + weight > self.setup.limit {
                self.keep = Keep::Stopped(NotReplayable::OverLimit);
            } else if self.held + weight > self.setup.total {
                self.keep = Keep::Stopped(NotReplayable::Memory);
            } else {
                self.held += weight;
            }
        }
    }

    fn break_off(&mut self) {
        self.original = Original::Broken;
        self.touched = true;
        if self.keep != Keep::Released {
            self.keep = Keep::Stopped(NotReplayable::Error);
        }
    }
}

/// What the trailers of a script count for: two letters and 32 bytes.
const TRAILER: usize = 34;
