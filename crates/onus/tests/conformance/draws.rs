//! Random numbers as a vector asks for them: the layers draw theirs from this thread's generator,
//! which can be seeded so that the next number answers as asked.

use std::cell::RefCell;
use std::collections::BTreeMap;

use onus_conformance::step::Draws;

/// Which of the questions of a decision matter, and how.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Asked {
    /// The gate's number in permille.
    pub(super) gate: Option<u16>,
    /// The probe's number in permille.
    pub(super) probe: Option<u16>,
    /// The share of the backoff's cap that is waited, in permille; a short wait unless it matters,
    /// so that the clock stays where the vector has it.
    pub(super) jitter: Option<u16>,
}

impl Asked {
    pub(super) fn new(draws: Draws, gate: bool, probes: bool, waits_matter: bool) -> Self {
        Self {
            gate: gate.then_some(draws.gate),
            probe: probes.then_some(draws.probe),
            jitter: waits_matter.then_some(draws.jitter),
        }
    }

    fn is_answered_by(self, bits: u64) -> bool {
        let gate = self.gate.is_none_or(|asked| answers(asked, bits, GATE_NARROWEST));
        let probe = self.probe.is_none_or(|asked| answers(asked, bits >> 16, PROBED));
        let jitter = ((bits >> 32) * 1000) >> 32;
        let waits = match self.jitter {
            None => jitter < 10,
            Some(asked) => jitter == u64::from(asked.max(1)) - 1,
        };
        gate && probe && waits
    }
}

/// Whether 16 bits are the number that is asked for, in permille. Below `surely` all numbers are
/// alike, and so are all from there on for a probe; exact ones would take long to find.
fn answers(asked: u16, bits: u64, surely: u64) -> bool {
    let number = ((bits & 0xffff) * 1000) >> 16;
    match u64::from(asked) {
        asked if asked < surely => number < surely,
        _ if surely == PROBED => number >= surely,
        asked => number == asked,
    }
}

/// A gate lets this many permille pass at least.
const GATE_NARROWEST: u64 = 19;

/// Permille of the suppressed calls that are probed.
const PROBED: u64 = 5;

thread_local! {
    static SEEDS: RefCell<BTreeMap<Asked, u64>> = const { RefCell::new(BTreeMap::new()) };
}

/// Makes the next number that is drawn on this thread answer as asked.
pub(super) fn prepare(asked: Asked) {
    let found = SEEDS.with_borrow_mut(|seeds| *seeds.entry(asked).or_insert_with(|| seed(asked)));
    fastrand::seed(found);
}

fn seed(asked: Asked) -> u64 {
    let answers = |seed: &u64| asked.is_answered_by(fastrand::Rng::with_seed(*seed).u64(..));
    (0..).find(answers).expect("there is one among so many")
}
