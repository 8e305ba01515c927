//! What was read of a body so far, kept within the limits.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::digest::Digest;
use super::error::NotReplayable;
use super::limits::{ReplayLimits, Reservation};

/// The kept part of one body: its data in order, then its trailers.
#[derive(Debug)]
pub(super) struct Record {
    // Most bodies are one frame; this field spares them the list.
    first: Bytes,
    rest: Vec<Bytes>,
    // Small frames are copied in here once there are many, so that a body cut into single bytes
    // costs its length and not a handle, or a read buffer that stays alive, for each of them.
    tail: BytesMut,
    data_bytes: usize,
    trailers: Option<Box<HeaderMap>>,
    limit: usize,
    held: Reservation,
}

impl Record {
    pub(super) fn new(limits: &ReplayLimits) -> Self {
        Self {
            first: Bytes::new(),
            rest: Vec::new(),
            tail: BytesMut::new(),
            data_bytes: 0,
            trailers: None,
            limit: limits.per_request(),
            held: limits.open(),
        }
    }

    /// Keeps `data` after what is kept, or nothing of it.
    pub(super) fn push(&mut self, data: &Bytes) -> Result<(), NotReplayable> {
        if data.is_empty() {
            return Ok(());
        }
        self.reserve(data.len())?;
        self.data_bytes += data.len();
        if self.rest.len() + 1 >= FRAMES_KEPT_WHOLE && data.len() < BLOCK {
            self.copy(data);
        } else {
            self.seal();
            self.append(data.clone());
        }
        Ok(())
    }

    /// Keeps the trailers, which end the body.
    pub(super) fn push_trailers(&mut self, trailers: &HeaderMap) -> Result<(), NotReplayable> {
        self.reserve(trailer_bytes(trailers))?;
        self.trailers = Some(Box::new(trailers.clone()));
        Ok(())
    }

    /// The piece of data at `index`, counted in order.
    pub(super) fn piece(&mut self, index: usize) -> Option<Bytes> {
        self.slot(index).cloned()
    }

    /// Like [`piece`](Self::piece), and lets go of it.
    pub(super) fn take_piece(&mut self, index: usize) -> Option<Bytes> {
        let piece = std::mem::take(self.slot(index)?);
        self.held.shrink(piece.len());
        Some(piece)
    }

    /// Whether there is data at `index` or after it.
    pub(super) fn has_piece(&self, index: usize) -> bool {
        let sealed = self.rest.len() + usize::from(self.data_bytes > 0);
        index < sealed || !self.tail.is_empty()
    }

    pub(super) fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }

    /// Bytes of data ever kept, those let go of included.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes
    }

    /// The digest of the kept data.
    pub(super) fn digest(&self) -> u64 {
        let mut digest = Digest::new();
        digest.update(&self.first);
        for piece in &self.rest {
            digest.update(piece);
        }
        digest.update(&self.tail);
        digest.finish()
    }

    fn reserve(&mut self, bytes: usize) -> Result<(), NotReplayable> {
        if bytes > self.limit.saturating_sub(self.held.bytes()) {
            return Err(NotReplayable::OverLimit);
        }
        if !self.held.grow(bytes) {
            return Err(NotReplayable::Memory);
        }
        Ok(())
    }

    fn slot(&mut self, index: usize) -> Option<&mut Bytes> {
        if index > self.rest.len() {
            self.seal();
        }
        match index.checked_sub(1) {
            None => (self.data_bytes > 0).then_some(&mut self.first),
            Some(index) => self.rest.get_mut(index),
        }
    }

    fn append(&mut self, data: Bytes) {
        if self.first.is_empty() && self.rest.is_empty() {
            self.first = data;
        } else {
            self.rest.push(data);
        }
    }

    fn copy(&mut self, mut data: &[u8]) {
        while !data.is_empty() {
            let mut room = self.tail.capacity() - self.tail.len();
            if room == 0 {
                self.seal();
                self.tail = BytesMut::with_capacity(BLOCK);
                room = BLOCK;
            }
            let (head, rest) = data.split_at(data.len().min(room));
            self.tail.extend_from_slice(head);
            data = rest;
        }
    }

    fn seal(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail).freeze();
            self.append(tail);
        }
    }
}

/// What trailers count for: HTTP/2's measure of a field, its text and 32 bytes.
fn trailer_bytes(trailers: &HeaderMap) -> usize {
    trailers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
}

/// Frames that are kept by reference before small ones are copied together: handlers write a
/// message in one to three pieces, and copying those would buy nothing.
const FRAMES_KEPT_WHOLE: usize = 8;

/// Frames from this size on are kept by reference, and smaller ones share blocks of it.
const BLOCK: usize = 4 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes of the pieces that frames of these sizes become.
    fn check(frames: &[usize], pieces: &[usize]) {
        let mut record = Record::new(&ReplayLimits::default());
        let mut sent = Vec::<u8>::new();
        for (i, len) in frames.iter().enumerate() {
            let frame = Bytes::from(vec![i as u8; *len]);
            sent.extend(&frame);
            record.push(&frame).expect("within the limits");
            assert!(record.has_piece(0) || sent.is_empty());
        }
        let kept: Vec<_> = (0..).map_while(|index| record.piece(index)).collect();
        assert_eq!(kept.iter().map(Bytes::len).collect::<Vec<_>>(), pieces);
        assert_eq!(kept.concat(), sent, "{frames:?}");
        assert!(!record.has_piece(kept.len()));
        assert_eq!(record.data_bytes(), sent.len());
    }

    #[test]
    fn many_small_frames_are_copied_together_in_order() {
        check(&[], &[]);
        check(&[0, 0], &[]);
        check(&[5, 0, 6], &[5, 6]);
        check(&[1; 8], &[1; 8]);
        check(&[1; 9], &[1; 9]);
        check(&[1; 30], &[1, 1, 1, 1, 1, 1, 1, 1, 22]);
        // Blocks are filled to the last byte.
        check(&[3; 3000], &[3, 3, 3, 3, 3, 3, 3, 3, 4096, 4096, 784]);
        check(&[4095; 11], &[4095, 4095, 4095, 4095, 4095, 4095, 4095, 4095, 4096, 4096, 4093]);
        // A large frame is kept as it is, and what was copied before it stays before it.
        check(&[1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 5000, 3, 3], &[1, 1, 1, 1, 1, 1, 1, 1, 4, 5000, 6]);
        check(&[4096; 10], &[4096; 10]);
    }

    #[test]
    fn frames_are_kept_by_reference_while_they_are_few_or_large() {
        let mut record = Record::new(&ReplayLimits::default());
        for (index, len) in [1, 1, 1, 1, 1, 1, 1, 1, 4096, 5000].into_iter().enumerate() {
            let frame = Bytes::from(vec![0; len]);
            record.push(&frame).expect("within the limits");
            let kept = record.piece(index).map(|piece| piece.as_ptr());
            assert_eq!(kept, Some(frame.as_ptr()), "frame {index}");
        }
    }
}
