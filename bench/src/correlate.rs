//! Lookups among 10,000 live requests.

use onus_agent::Timestamp;
use onus_agent::correlator::{Correlator, Found, Limits, Token};

/// A correlator with 10,000 live requests of one id each.
pub struct Crowd {
    correlator: Correlator<u64>,
    tokens: Vec<Token>,
    ids: Vec<[u8; 16]>,
    next: usize,
}

const LIVE: usize = 10_000;

impl Crowd {
    /// # Panics
    ///
    /// Never: there is room for all.
    #[must_use]
    pub fn new() -> Self {
        let correlator = Correlator::new(Limits::default(), 7);
        let ids: Vec<[u8; 16]> =
            (0..LIVE as u128).map(|n| (n * 0x9e37_79b9_7f4a_7c15).to_be_bytes()).collect();
        let open = |(n, id): (usize, &[u8; 16])| {
            correlator
                .open([&id[..]].into_iter(), n as u64, Timestamp::ZERO)
                .expect("there is room")
        };
        let tokens = ids.iter().enumerate().map(open).collect();
        Self { correlator, tokens, ids, next: 0 }
    }

    fn step(&mut self) -> usize {
        // A stride that visits all of them, and no neighbour after its neighbour.
        self.next = (self.next + 7919) % LIVE;
        self.next
    }

    /// Finds a request by its token.
    pub fn by_token(&mut self) -> Option<u64> {
        let at = self.step();
        self.correlator.find(self.tokens[at])
    }

    /// Finds a request by its id.
    pub fn by_id(&mut self) -> Found<u64> {
        let at = self.step();
        self.correlator.find_by_id(&self.ids[at])
    }
}

impl Default for Crowd {
    fn default() -> Self {
        Self::new()
    }
}
