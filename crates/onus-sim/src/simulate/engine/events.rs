//! What happens next.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::reply::Reply;
use super::slab::Ref;

/// Something that happens at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A request comes from outside.
    Arrival,
    /// A request's own work is done.
    Worked(Ref),
    /// The handler gives a request up, or its caller's time is over.
    OutOfTime(Ref),
    /// An attempt of a call has ended.
    Ended { call: Ref, attempt: u32, reply: Reply },
    /// The caller's timer of an attempt.
    Timeout { call: Ref, attempt: u32 },
    /// The wait before a retry is over.
    Resend { call: Ref, attempt: u32 },
    /// The change of this number.
    Change(u32),
}

/// Events in the order of their times, and of their making where the times are the same.
///
/// What happens at once goes through a ring; most events of a run without latencies do.
#[derive(Debug, Default)]
pub(super) struct Events {
    at_once: VecDeque<Event>,
    later: BinaryHeap<Reverse<Entry>>,
    made: u64,
}

#[derive(Debug)]
struct Entry {
    time: u64,
    number: u64,
    event: Event,
}

impl Events {
    pub(super) fn at_once(&mut self, event: Event) {
        self.at_once.push_back(event);
    }

    pub(super) fn at(&mut self, time: u64, event: Event) {
        self.made += 1;
        self.later.push(Reverse(Entry { time, number: self.made, event }));
    }

    /// The next event, and its time if that is not `now`.
    pub(super) fn next(&mut self, now: u64) -> Option<(u64, Event)> {
        if let Some(event) = self.at_once.pop_front() {
            return Some((now, event));
        }
        self.later.pop().map(|Reverse(entry)| (entry.time, entry.event))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.number).cmp(&(other.time, other.number))
    }
}
