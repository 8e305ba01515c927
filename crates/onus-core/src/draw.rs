//! The random number of one decision.

/// The random number of one decision, handed in by the host.
///
/// One number feeds three questions from separate bits, so that a model checker can choose each
/// answer by itself: is a narrow gate passed (16 bits), is a suppressed retry probed (16 bits),
/// how long is the backoff (32 bits).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Draw(u64);

impl Draw {
    /// A draw from 64 uniformly random bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// True with probability `permille` / 1000, as far as 16 bits can tell.
    pub(crate) const fn passes_gate(self, permille: u32) -> bool {
        let bits = self.0 & 0xffff;
        bits * 1000 < (permille as u64) << 16
    }

    /// True with probability `permille` / 1000, independent of [`Self::passes_gate`].
    pub(crate) const fn takes_probe(self, permille: u32) -> bool {
        let bits = (self.0 >> 16) & 0xffff;
        bits * 1000 < (permille as u64) << 16
    }

    /// 32 bits of jitter.
    pub(crate) const fn jitter(self) -> u32 {
        (self.0 >> 32) as u32
    }
}
