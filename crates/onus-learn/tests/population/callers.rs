//! A population of callers with their callees, the same for each seed. It is invented: 120 callers of 3 to
//! 8 callees, half of which take their caller down, at one request in a minute to ten in a second.
//! There are as many outages as it takes for half a percent of all own errors, and three to five
//! with chronic failures, to meet a failed callee in the same request.

use std::ops::Range;

use fastrand::Rng;

/// Whether optional callees fail all the time.
#[derive(Clone, Copy)]
pub(super) enum Chronic {
    None,
    /// A quarter of them fails 2 to 30 % of its attempts, and nobody minds.
    Some,
    /// A quarter of them fails nine of ten attempts.
    Dead,
}

/// A caller.
pub(super) struct Caller {
    /// Requests in a minute.
    pub(super) rate: f64,
    /// The share of its requests that it fails by itself.
    pub(super) own: f64,
    /// Whether the failure of a callee that it needs leaves its other calls going.
    pub(super) goes_on: bool,
    pub(super) callees: Vec<Callee>,
    pub(super) own_outages: Vec<Outage>,
    /// Those of what all its callees have in common.
    pub(super) common_outages: Vec<Outage>,
}

/// A callee.
pub(super) struct Callee {
    /// The share of its failures that fail the caller …
    pub(super) takes_down: f64,
    /// … and from a minute on.
    pub(super) later: (u64, f64),
    /// The share of attempts that fail, each by itself.
    pub(super) fails: f64,
    /// Attempts of a call, 1 or 2.
    pub(super) attempts: u32,
    pub(super) outages: Vec<Outage>,
}

/// Minutes in which a share of everything fails.
#[derive(Clone)]
pub(super) struct Outage {
    pub(super) minutes: Range<u64>,
    pub(super) share: f64,
}

pub(super) const MINUTES: u64 = 4 * 24 * 60;

pub(super) fn callers(chronic: Chronic, seed: u64) -> Vec<Caller> {
    let mut random = Rng::with_seed(seed);
    (0..120).map(|_| caller(chronic, &mut random)).collect()
}

fn caller(chronic: Chronic, random: &mut Rng) -> Caller {
    let callees = random.usize(3..=8);
    Caller {
        rate: between(1.0, 600.0, random),
        own: between(1e-5, 5e-3, random),
        // Half of the callers call in parallel, and half of those give up the other calls.
        goes_on: random.u8(..4) == 0,
        callees: (0..callees).map(|_| callee(chronic, random)).collect(),
        own_outages: outages(4, random),
        common_outages: outages(2, random),
    }
}

fn callee(chronic: Chronic, random: &mut Rng) -> Callee {
    // Nothing is tolerated always, or never.
    let noise = 0.01 * random.f64();
    let (close, open) = (1.0 - noise, noise);
    let takes_down = match random.u8(..100) {
        0..50 => close,
        50..95 => open,
        _ => 0.5,
    };
    let later = match random.u8(..10) {
        0 => (random.u64(..MINUTES), if takes_down == close { open } else { close }),
        _ => (MINUTES, takes_down),
    };
    let fails = between(1e-5, 5e-3, random);
    let is_chronic = takes_down == open && random.u8(..4) == 0;
    let chronically = between(0.02, 0.3, random);
    let fails = match chronic {
        Chronic::Some if is_chronic => chronically,
        Chronic::Dead if is_chronic => 0.9,
        Chronic::None | Chronic::Some | Chronic::Dead => fails,
    };
    Callee { takes_down, later, fails, attempts: random.u32(1..=2), outages: outages(4, random) }
}

/// So many outages of 2 to 15 minutes, in which a tenth to nine tenths fail.
fn outages(count: usize, random: &mut Rng) -> Vec<Outage> {
    let mut outage = || {
        let start = random.u64(..MINUTES);
        let minutes = start..start + random.u64(2..=15);
        Outage { minutes, share: 0.1 + 0.8 * random.f64() }
    };
    (0..count).map(|_| outage()).collect()
}

/// Each order of magnitude as likely as the others.
fn between(low: f64, high: f64, random: &mut Rng) -> f64 {
    low * (high / low).powf(random.f64())
}
