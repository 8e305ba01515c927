//! Frames of HTTP/2 that carry nothing: each costs its sender nine bytes, and there is no end of
//! them in the standard.

use std::io;

use crate::activity::Activity;

/// What passes of a client's HTTP/2 connection, frame by frame.
///
/// Streams that are reset at once, headers that do not end and data in tiny pieces are bounded by
/// h2. PING, SETTINGS and PRIORITY are not: they fill no memory, and keep the thread busy that others
/// wait for.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes until the next frame begins.
    skip: usize,
    /// As much of the head of a frame as there is.
    head: [u8; HEAD],
    filled: usize,
    /// Frames that carried nothing, less those that other frames have paid for.
    idle: u32,
    /// How many of them there may be between two looks at the connection.
    max: u32,
    /// The look after which they are counted.
    look: u32,
}

/// A client sends frames that carry nothing.
#[derive(Debug)]
pub(crate) struct Flood;

impl Frames {
    /// Of a connection that begins.
    pub(crate) fn new(max: u32) -> Self {
        Self { skip: PREFACE, head: [0; HEAD], filled: 0, idle: 0, max, look: 0 }
    }

    /// Notes what was received.
    pub(crate) fn pass(&mut self, mut bytes: &[u8], activity: &Activity) -> Result<(), Flood> {
        let look = activity.looks();
        if self.look != look {
            (self.look, self.idle) = (look, 0);
        }
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return Ok(());
            }
            let (taken, rest) = bytes.split_at((HEAD - self.filled).min(bytes.len()));
            self.head[self.filled..self.filled + taken.len()].copy_from_slice(taken);
            self.filled += taken.len();
            bytes = rest;
            if self.filled == HEAD {
                self.filled = 0;
                self.frame()?;
            }
        }
    }

    fn frame(&mut self) -> Result<(), Flood> {
        let [a, b, c, kind, flags, ..] = self.head;
        self.skip = u32::from_be_bytes([0, a, b, c]) as usize;
        self.idle = match kind {
            DATA | HEADERS => self.idle.saturating_sub(PAID),
            PRIORITY => self.idle + 1,
            PING | SETTINGS if flags & ACK == 0 => self.idle + 1,
            // Resets have a bound of their own; acknowledgements are as few as what they answer, and
            // updates of a window as many as what the client reads.
            _ => self.idle,
        };
        if self.idle > self.max { Err(Flood) } else { Ok(()) }
    }
}

impl From<Flood> for io::Error {
    /// Only the kind of an error comes back out of h2.
    fn from(Flood: Flood) -> Self {
        FLOOD.into()
    }
}

/// What the connection of such a client ends with; nothing else does.
pub(crate) const FLOOD: io::ErrorKind = io::ErrorKind::QuotaExceeded;

/// Frames without anything that one with something pays for: clients that measure the time of a
/// round trip send a PING for what they receive.
const PAID: u32 = 10;

const PREFACE: usize = 24;
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const PRIORITY: u8 = 2;
const SETTINGS: u8 = 4;
const PING: u8 = 6;

const ACK: u8 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let mut frame = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        frame.resize(HEAD + usize::from(length), 0xff);
        frame
    }

    /// Whether a connection may send so many of these frames, ten being allowed, however its bytes
    /// come.
    fn check(frames: &[(usize, u8, u8, u8)], is_fine: bool) {
        let mut bytes = vec![0xff; PREFACE];
        for &(times, kind, flags, length) in frames {
            bytes.extend(frame(kind, flags, length).repeat(times));
        }
        for size in [1, 2, 7, 9, 100, bytes.len()] {
            let (mut passed, activity) = (Frames::new(10), Activity::default());
            let all = bytes.chunks(size).try_for_each(|part| passed.pass(part, &activity));
            assert_eq!(all.is_ok(), is_fine, "{frames:?} in pieces of {size}");
        }
    }

    #[test]
    fn frames_without_anything_are_bounded_and_all_others_pass() {
        check(&[], true);
        check(&[(10, PING, 0, 8)], true);
        check(&[(11, PING, 0, 8)], false);
        check(&[(11, PING, ACK, 8)], true);
        check(&[(11, SETTINGS, 0, 0)], false);
        check(&[(11, PRIORITY, 0, 5)], false);
        check(&[(99, DATA, 0, 1), (99, HEADERS, 5, 3)], true);
        check(&[(10, PING, 0, 8), (1, HEADERS, 5, 3), (10, PING, 0, 8)], true);
        check(&[(10, PING, 0, 8), (1, DATA, 0, 3), (11, PING, 0, 8)], false);
        // RST_STREAM, WINDOW_UPDATE, and what no standard knows.
        check(&[(99, 3, 0, 4), (99, 8, 0, 4), (99, 77, 0, 0)], true);
    }

    #[test]
    fn time_pays_too() {
        let (mut passed, activity) = (Frames::new(10), Activity::default());
        passed.pass(&[0; PREFACE], &activity).unwrap();
        for _ in 0..3 {
            passed.pass(&frame(PING, 0, 8).repeat(10), &activity).unwrap();
            activity.look();
        }
        assert!(passed.pass(&frame(PING, 0, 8).repeat(11), &activity).is_err());
    }
}
