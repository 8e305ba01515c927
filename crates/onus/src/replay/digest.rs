//! A number that is equal for equal bodies, to recognise a handler that sends a request again.

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use foldhash::fast::{FixedState, FoldHasher};
use http_body::Frame;

/// Where the digest of a body shows that was handed away with
/// [`ReplayBody::once`](super::ReplayBody::once), and whether it broke.
///
/// Digests do not depend on how the data was cut into frames, and leave trailers out. They are not
/// cryptographic and may differ between builds: compare them within one process, and only where
/// somebody who makes two bodies collide harms nobody else.
pub struct DigestCell {
    limit: usize,
    progress: Mutex<Progress>,
}

impl DigestCell {
    /// A cell for a body of at most `limit` bytes; longer bodies have no digest.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            progress: Mutex::new(Progress { digest: Digest::new(), stage: Stage::Reading }),
        }
    }

    /// The digest, once all data of the body was read.
    pub fn digest(&self) -> Option<u64> {
        let progress = self.lock();
        match progress.stage {
            Stage::Complete => Some(progress.digest.finish()),
            Stage::Reading | Stage::Unknown | Stage::Broken => None,
        }
    }

    /// Whether the body ended with an error.
    pub fn is_broken(&self) -> bool {
        self.lock().stage == Stage::Broken
    }

    /// Notes one frame of the body, and whether no data follows it.
    pub(super) fn frame(&self, frame: &Frame<Bytes>, last: bool) {
        let mut progress = self.lock();
        if progress.stage != Stage::Reading {
            return;
        }
        if let Some(data) = frame.data_ref() {
            if data.len() > self.limit.saturating_sub(progress.digest.bytes()) {
                progress.stage = Stage::Unknown;
                return;
            }
            progress.digest.update(data);
        }
        if last || frame.is_trailers() {
            progress.stage = Stage::Complete;
        }
    }

    /// Notes that the body has ended as it should.
    pub(super) fn end(&self) {
        let mut progress = self.lock();
        if progress.stage == Stage::Reading {
            progress.stage = Stage::Complete;
        }
    }

    /// Notes that the body has ended with an error.
    pub(super) fn broke(&self) {
        self.lock().stage = Stage::Broken;
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for DigestCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DigestCell")
            .field("limit", &self.limit)
            .field("digest", &self.digest())
            .finish()
    }
}

/// The digest of a body without data.
pub fn empty_digest() -> u64 {
    Digest::new().finish()
}

struct Progress {
    digest: Digest,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Reading,
    Complete,
    /// There is more than a digest is made of.
    Unknown,
    Broken,
}

/// A running hash that sees the bytes and not where they were cut.
#[derive(Clone)]
pub(super) struct Digest {
    hasher: FoldHasher<'static>,
    // The hasher is sensitive to the cuts between its writes, so it only ever gets whole blocks.
    block: [u8; BLOCK],
    filled: usize,
    bytes: usize,
}

impl Digest {
    pub(super) fn new() -> Self {
        Self {
            hasher: FixedState::default().build_hasher(),
            block: [0; BLOCK],
            filled: 0,
            bytes: 0,
        }
    }

    /// Data seen so far.
    fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn update(&mut self, mut data: &[u8]) {
        self.bytes += data.len();
        if self.filled > 0 {
            let (head, rest) = data.split_at(data.len().min(BLOCK - self.filled));
            self.fill(head);
            data = rest;
            if self.filled < BLOCK {
                return;
            }
            self.hasher.write(&self.block);
            self.filled = 0;
        }
        let (blocks, rest) = data.as_chunks::<BLOCK>();
        for block in blocks {
            self.hasher.write(block);
        }
        self.fill(rest);
    }

    pub(super) fn finish(&self) -> u64 {
        let mut hasher = self.hasher.clone();
        hasher.write(&self.block[..self.filled]);
        hasher.finish()
    }

    fn fill(&mut self, data: &[u8]) {
        self.block[self.filled..self.filled + data.len()].copy_from_slice(data);
        self.filled += data.len();
    }
}

/// Long enough for the hasher to run at full width, short enough to sit in a cell.
const BLOCK: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    use std::collections::HashSet;

    fn digest<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let mut digest = Digest::new();
        for piece in pieces {
            digest.update(piece);
        }
        digest.finish()
    }

    #[test]
    fn cuts_between_frames_do_not_change_the_digest() {
        let data: Vec<u8> = (0..1000_u32).map(|i| (i * 7 % 251) as u8).collect();
        let whole = digest([&data[..]]);
        for size in 1..=data.len() {
            assert_eq!(digest(data.chunks(size)), whole, "frames of {size} bytes");
        }
    }

    #[test]
    fn different_bodies_have_different_digests() {
        // Every length with zeros (padding must not hide), and every single flipped byte.
        let zeros = [0_u8; 600];
        let mut seen: HashSet<u64> = (0..=600).map(|n| digest([&zeros[..n]])).collect();
        for at in 0..600 {
            let mut data = zeros;
            data[at] = 1;
            seen.insert(digest([&data[..]]));
        }
        assert_eq!(seen.len(), 601 + 600);
        assert_eq!(empty_digest(), digest([&[][..]]));
    }

    #[test]
    fn a_cell_knows_its_digest_once_all_data_was_seen() {
        let data = |text: &'static str| Frame::data(Bytes::from_static(text.as_bytes()));
        let trailers = || Frame::trailers(http::HeaderMap::new());
        let expected = Some(digest([&b"abcd"[..]]));
        let check = |name: &str, limit: usize, feed: &dyn Fn(&DigestCell), digest: Option<u64>| {
            let cell = DigestCell::new(limit);
            feed(&cell);
            assert_eq!(cell.digest(), digest, "{name}");
        };

        check("nothing read", 9, &|_| {}, None);
        check("half read", 9, &|c| c.frame(&data("abcd"), false), None);
        check("last frame", 4, &|c| c.frame(&data("abcd"), true), expected);
        check(
            "trailers end the data",
            4,
            &|c| {
                c.frame(&data("ab"), false);
                c.frame(&data("cd"), false);
                c.frame(&trailers(), false);
            },
            expected,
        );
        check(
            "end",
            4,
            &|c| {
                c.frame(&data("abcd"), false);
                c.end();
            },
            expected,
        );
        check("end of nothing", 0, &|c| c.end(), Some(empty_digest()));
        check("over the limit", 3, &|c| c.frame(&data("abcd"), true), None);
        check(
            "over the limit stays unknown",
            3,
            &|c| {
                c.frame(&data("abcd"), false);
                c.frame(&data("a"), true);
                c.end();
            },
            None,
        );
        check(
            "failed",
            9,
            &|c| {
                c.frame(&data("abcd"), false);
                c.broke();
                c.end();
            },
            None,
        );
    }
}
