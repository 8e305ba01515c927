//! A file seen through a window of fixed size: memory does not grow with what is read.

use std::io::{self, Read};

/// The unread part of an input that is in memory, and where it is in the whole.
pub(crate) struct Window<'r> {
    source: Box<dyn Read + 'r>,
    buffer: Box<[u8]>,
    /// The unread bytes are `buffer[start..end]`.
    start: usize,
    end: usize,
    /// Where `buffer[0]` is in the input.
    base: u64,
    ended: bool,
}

impl<'r> Window<'r> {
    pub(crate) fn new(source: Box<dyn Read + 'r>) -> Self {
        let buffer = vec![0; SIZE].into_boxed_slice();
        Self { source, buffer, start: 0, end: 0, base: 0, ended: false }
    }

    /// Where the next byte is, counted from the start of the input.
    pub(crate) fn at(&self) -> u64 {
        self.base + self.start as u64
    }

    /// What can be seen, from the next byte on.
    #[inline]
    pub(crate) fn seen(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// The first byte of what can be seen.
    #[inline]
    pub(crate) fn first(&self) -> Option<u8> {
        self.seen().first().copied()
    }

    /// Goes `bytes` on; they must be in sight.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start);
        self.start = (self.start + bytes).min(self.end);
    }

    /// Brings more into sight. False at the end of the input, or when the window is full.
    #[cold]
    pub(crate) fn more(&mut self) -> io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.base += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.end == self.buffer.len() {
            return Ok(false);
        }
        loop {
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => {
                    self.ended = true;
                    return Ok(false);
                }
                Ok(read) => {
                    self.end += read;
                    return Ok(true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    // Nothing comes after a broken stream.
                    self.ended = true;
                    return Err(error);
                }
            }
        }
    }

    /// Whether `bytes` (at most [`REACH`]) could be brought into sight.
    #[inline]
    pub(crate) fn reach(&mut self, bytes: usize) -> io::Result<bool> {
        while self.end - self.start < bytes {
            if !self.more()? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Large enough that refilling costs nothing, small enough to stay in a cache.
const SIZE: usize = 256 * 1024;

/// The most that can be in sight for sure: the longest text that is kept.
pub(crate) const REACH: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Drops(Vec<u8>);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            buffer[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn counts_what_it_went_over() {
        let mut window = Window::new(Box::new(Drops(b"abcdef".to_vec())));
        assert!(window.reach(3).unwrap());
        assert_eq!(window.seen(), b"abc");
        window.advance(2);
        assert!(window.reach(4).unwrap());
        assert_eq!((window.at(), window.seen()), (2, &b"cdef"[..]));
        assert!(!window.reach(5).unwrap());
        window.advance(1);
        assert_eq!((window.at(), window.seen()), (3, &b"def"[..]));
    }

    #[test]
    fn a_full_window_brings_no_more() {
        let mut window = Window::new(Box::new(io::repeat(b'x')));
        assert!(window.reach(SIZE).unwrap());
        assert!(!window.more().unwrap());
        window.advance(1);
        assert!(window.more().unwrap());
        assert_eq!(window.at(), 1);
    }
}
