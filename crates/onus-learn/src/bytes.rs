//! An estimator on disk: 40 bytes, little-endian.
//!
//! | bytes | content |
//! |---|---|
//! | 0 | version of the layout: 1 |
//! | 1 | class: 0 fail-close, 1 fail-open, 2 unknown, 3 no-data |
//! | 2 | n: isolated failures remembered, 0 to 100 |
//! | 3..8 | zero |
//! | 8..16 | k: how much of n the caller shared, f64 |
//! | 16..24 | nanoseconds since the last isolated failure learnt from |
//! | 24..32 | nanoseconds since the last failure of any kind |
//! | 32..40 | nanoseconds since the class became what it is |

use std::time::Duration;

use onus_core::Timestamp;

use crate::class::{CLOSE_LEAVE, MIN_SAMPLE, MeasuredClass, OPEN_LEAVE};
use crate::estimator::{EXPIRY, Estimator, MEMORY};

/// The size of an estimator on disk.
pub const ESTIMATOR_BYTES: usize = 40;

impl Estimator {
    /// The state at `now`, for a later process.
    #[must_use]
    pub fn to_bytes(&self, now: Timestamp) -> [u8; ESTIMATOR_BYTES] {
        let edge = self.at(now);
        let mut bytes = [0; ESTIMATOR_BYTES];
        bytes[0] = VERSION;
        bytes[1] = class_code(edge.class);
        bytes[2] = edge.n as u8;
        bytes[8..16].copy_from_slice(&edge.k.to_le_bytes());
        bytes[16..24].copy_from_slice(&nanos(edge.evidence_age).to_le_bytes());
        bytes[24..32].copy_from_slice(&nanos(edge.failure_age).to_le_bytes());
        bytes[32..40].copy_from_slice(&nanos(edge.class_age).to_le_bytes());
        bytes
    }

    /// The state that was written `away` ago, read at `now`.
    ///
    /// None if another version wrote it or if no estimator can be in that state: a damaged file
    /// must never make an edge fail-open. The host then starts with [`Estimator::new`].
    #[must_use]
    pub fn from_bytes(
        bytes: &[u8; ESTIMATOR_BYTES],
        now: Timestamp,
        away: Duration,
    ) -> Option<Self> {
        if bytes[0] != VERSION || bytes[3..8] != [0; 5] {
            return None;
        }
        let edge = Self {
            class: class_of(bytes[1])?,
            n: f64::from(bytes[2]),
            k: f64::from_le_bytes(eight(bytes, 8)),
            evidence_age: Duration::from_nanos(u64::from_le_bytes(eight(bytes, 16))),
            failure_age: Duration::from_nanos(u64::from_le_bytes(eight(bytes, 24))),
            class_age: Duration::from_nanos(u64::from_le_bytes(eight(bytes, 32))),
            as_of: now,
        };
        edge.is_possible().then(|| edge.aged(away, now))
    }

    fn is_possible(&self) -> bool {
        let ratio = self.k / self.n;
        let class_fits = match self.class {
            MeasuredClass::FailOpen => self.n >= MIN_SAMPLE && ratio <= OPEN_LEAVE,
            MeasuredClass::FailClose => self.n >= MIN_SAMPLE && ratio >= CLOSE_LEAVE,
            MeasuredClass::Unknown => true,
            MeasuredClass::NoData => self.n == 0.0 && self.failure_age.is_zero(),
        };
        let evidence_fits = if self.n == 0.0 {
            self.k == 0.0 && self.evidence_age.is_zero()
        } else {
            (0.0..=self.n).contains(&self.k) && self.failure_age <= self.evidence_age
        };
        class_fits
            && evidence_fits
            && self.n <= MEMORY
            && self.evidence_age < EXPIRY
            && self.failure_age < EXPIRY
    }
}

/// Readers refuse every other version: a class is learnt again within minutes.
const VERSION: u8 = 1;

const fn class_code(class: MeasuredClass) -> u8 {
    match class {
        MeasuredClass::FailClose => 0,
        MeasuredClass::FailOpen => 1,
        MeasuredClass::Unknown => 2,
        MeasuredClass::NoData => 3,
    }
}

const fn class_of(code: u8) -> Option<MeasuredClass> {
    match code {
        0 => Some(MeasuredClass::FailClose),
        1 => Some(MeasuredClass::FailOpen),
        2 => Some(MeasuredClass::Unknown),
        3 => Some(MeasuredClass::NoData),
        _ => None,
    }
}

fn eight(bytes: &[u8; ESTIMATOR_BYTES], start: usize) -> [u8; 8] {
    std::array::from_fn(|i| bytes[start + i])
}

fn nanos(age: Duration) -> u64 {
    u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::counts::EdgeCounts;

    const NOW: Timestamp = Timestamp::from_nanos(77);
    const DAY: Duration = Duration::from_secs(86_400);

    fn learnt(isolated: u64, isolated_both: u64) -> Estimator {
        let mut edge = Estimator::new(Timestamp::ZERO);
        let counts =
            EdgeCounts { failures: isolated, isolated, isolated_both, ..EdgeCounts::default() };
        edge.minute(counts, false, Timestamp::ZERO);
        edge
    }

    #[test]
    fn the_layout_is_fixed() {
        let edge = Estimator {
            class: MeasuredClass::Unknown,
            n: 100.0,
            k: 50.5,
            evidence_age: Duration::from_nanos(0x0102),
            failure_age: Duration::from_nanos(0x01),
            class_age: Duration::from_nanos(0x0102_0304_0506_0708),
            as_of: NOW,
        };
        let bytes = [
            1, 2, 100, 0, 0, 0, 0, 0, // version, class, n, zero
            0, 0, 0, 0, 0, 0x40, 0x49, 0x40, // k
            2, 1, 0, 0, 0, 0, 0, 0, // evidence
            1, 0, 0, 0, 0, 0, 0, 0, // failure
            8, 7, 6, 5, 4, 3, 2, 1, // class
        ];
        assert_eq!(edge.to_bytes(NOW), bytes);
        assert_eq!(Estimator::from_bytes(&bytes, NOW, Duration::ZERO), Some(edge));
    }

    #[test]
    fn ages_go_on_while_the_process_is_away() {
        let written = learnt(20, 0).to_bytes(Timestamp::ZERO.saturating_add(DAY));
        for (away, class, held) in [
            (Duration::ZERO, MeasuredClass::FailOpen, DAY),
            (DAY, MeasuredClass::FailOpen, 2 * DAY),
            (29 * DAY, MeasuredClass::NoData, Duration::ZERO),
            (30 * DAY, MeasuredClass::NoData, DAY),
        ] {
            // The new process's clock starts at zero, long after the evidence.
            let edge = Estimator::from_bytes(&written, Timestamp::ZERO, away);
            let found = edge.expect("bytes of an estimator").measure(Timestamp::ZERO);
            assert_eq!((found.class, found.held), (class, held), "away for {away:?}");
        }
    }

    #[test]
    fn an_age_beyond_the_room_for_it_stays_at_the_longest() {
        let away = Duration::from_nanos(u64::MAX);
        let read =
            |bytes, away| Estimator::from_bytes(&bytes, NOW, away).expect("no data, for long");
        let once = read(Estimator::new(NOW).to_bytes(NOW), away);
        let twice = read(once.to_bytes(NOW), away);
        assert_eq!(twice.measure(NOW).held, away);
        assert_eq!(read(twice.to_bytes(NOW), Duration::ZERO), twice);
    }

    #[test]
    fn refuses_states_that_no_estimator_is_in() {
        let good = learnt(20, 0).to_bytes(Timestamp::ZERO);
        assert!(Estimator::from_bytes(&good, NOW, Duration::ZERO).is_some());
        let close = learnt(20, 20).to_bytes(Timestamp::ZERO);
        let nothing = Estimator::new(Timestamp::ZERO).to_bytes(Timestamp::ZERO);
        let set = |mut bytes: [u8; ESTIMATOR_BYTES], at: usize, with: &[u8]| {
            bytes[at..at + with.len()].copy_from_slice(with);
            bytes
        };
        let month = (EXPIRY.as_nanos() as u64).to_le_bytes();
        for (what, bytes) in [
            ("zeros", [0; ESTIMATOR_BYTES]),
            ("another version", set(good, 0, &[2])),
            ("no such class", set(good, 1, &[4])),
            ("padding", set(good, 7, &[1])),
            ("fail-open of too few", set(good, 2, &[9])),
            ("more than the memory", set(good, 2, &[101])),
            ("fail-open at 36 %", set(good, 8, &7.2_f64.to_le_bytes())),
            ("fail-close at 64 %", set(close, 8, &12.8_f64.to_le_bytes())),
            ("fail-close of too few", set(set(close, 2, &[9]), 8, &9.0_f64.to_le_bytes())),
            ("k above n", set(close, 8, &20.5_f64.to_le_bytes())),
            ("k below zero", set(good, 8, &(-1.0_f64).to_le_bytes())),
            ("k not a number", set(good, 8, &f64::NAN.to_le_bytes())),
            ("k without n", set(nothing, 8, &1.0_f64.to_le_bytes())),
            ("no data, yet evidence", set(good, 1, &[3])),
            ("expired evidence", set(good, 16, &month)),
            ("failure older than the evidence", set(good, 24, &[1])),
            ("no data, yet a failure", set(nothing, 24, &[1])),
        ] {
            assert_eq!(Estimator::from_bytes(&bytes, NOW, Duration::ZERO), None, "{what}");
        }
        let joint_only = EdgeCounts { failures: 1, joint: 1, ..EdgeCounts::default() };
        let mut edge = Estimator::new(Timestamp::ZERO);
        edge.minute(joint_only, false, Timestamp::ZERO);
        let bytes = set(edge.to_bytes(Timestamp::ZERO), 24, &month);
        assert_eq!(Estimator::from_bytes(&bytes, NOW, Duration::ZERO), None, "expired failure");
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            minutes in prop::collection::vec((0..50_u64, 0..50_u64, 0..20 * 86_400_u64), 0..20),
            idle in 0..40 * 86_400_u64,
        ) {
            let mut now = Timestamp::ZERO;
            let mut edge = Estimator::new(now);
            for (isolated, isolated_both, seconds) in minutes {
                now = now.saturating_add(Duration::from_secs(seconds));
                let counts =
                    EdgeCounts { failures: 1, isolated, isolated_both, ..EdgeCounts::default() };
                edge.minute(counts, false, now);
            }
            let later = now.saturating_add(Duration::from_secs(idle));
            let read = Estimator::from_bytes(&edge.to_bytes(later), later, Duration::ZERO);
            prop_assert_eq!(read, Some(edge.at(later)));
        }

        #[test]
        fn damage_never_panics_nor_invents_fail_open(
            isolated in 0..30_u64, both in 0..30_u64, at in 0..ESTIMATOR_BYTES, value in any::<u8>(),
            away in any::<u64>(),
        ) {
            let mut bytes = learnt(isolated, both).to_bytes(Timestamp::ZERO);
            bytes[at] = value;
            let Some(edge) = Estimator::from_bytes(&bytes, NOW, Duration::from_nanos(away)) else {
                return Ok(());
            };
            let found = edge.measure(NOW);
            if found.class == MeasuredClass::FailOpen {
                prop_assert!(found.n >= 10.0 && found.k / found.n <= 0.35);
            }
            prop_assert_eq!(Estimator::from_bytes(&edge.to_bytes(NOW), NOW, Duration::ZERO), Some(edge));
        }
    }
}
