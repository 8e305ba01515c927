//! What a request is about: a customer, a shard, an account. It goes with the request down the
//! chain.

use http::{HeaderMap, HeaderName};

/// One of a hundred keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Key(usize);

impl Key {
    /// How many there are.
    pub(crate) const COUNT: usize = 100;

    /// The key of a client's request of this number: each hundred in a row has every key once, and
    /// keys that are neighbours are sent far from each other.
    pub(crate) fn of_request(number: u64) -> Self {
        Self((number % Self::COUNT as u64) as usize * STRIDE % Self::COUNT)
    }

    /// The key that a request says.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let key = headers.get(HEADER)?.to_str().ok()?.parse().ok()?;
        (key < Self::COUNT).then_some(Self(key))
    }

    pub(crate) fn write(self, headers: &mut HeaderMap) {
        headers.insert(HEADER, self.0.into());
    }

    pub(crate) const fn index(self) -> usize {
        self.0
    }

    /// Whether it is one of the first so many.
    pub(crate) const fn is_below(self, count: u64) -> bool {
        (self.0 as u64) < count
    }
}

const HEADER: HeaderName = HeaderName::from_static("demo-key");

/// Has no factor in common with the number of keys.
const STRIDE: usize = 37;
