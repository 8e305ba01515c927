//! The brake: where probes show that suppressed retries would have helped, somebody must know
//! (protocol §10).

use core::time::Duration;

use crate::time::Timestamp;

const SLOTS: usize = 10;
/// Probes are remembered for 30 minutes, in ten slots.
const SLOT: Duration = Duration::from_secs(3 * 60);
/// The fewest probes that say anything.
const PROBES_MIN: u64 = 50;
const HALVING_INTERVAL: Duration = Duration::from_secs(5 * 60);

/// The probes of one edge over the last 30 minutes, and what followed from them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Brake {
    /// Probes made and probes that succeeded, a ring over slot numbers.
    slots: [(u32, u32); SLOTS],
    slot: u64,
    /// Whether the last probe found suppression costly; the event is raised once.
    raised: bool,
    halvings: u8,
    last_halving: Option<Timestamp>,
    event: Option<BrakeEvent>,
}

/// What a probe's outcome set off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BrakeEvent {
    /// More than half of the suppressed retries would have succeeded: an operator should look.
    Raised,
    /// The edge's enforce share was halved.
    Halved,
}

impl Brake {
    /// Takes in a probe's outcome. `acts` is whether the brake is configured to halve the edge's
    /// enforce share; it never does while the budget is empty.
    pub fn record(&mut self, succeeded: bool, acts: bool, budget_empty: bool, now: Timestamp) {
        self.advance(now);
        let (made, ok) = &mut self.slots[(self.slot % SLOTS as u64) as usize];
        *made = made.saturating_add(1);
        *ok = ok.saturating_add(u32::from(succeeded));
        if !self.suppression_is_costly() {
            self.raised = false;
            return;
        }
        let rested =
            self.last_halving.is_none_or(|last| now.saturating_since(last) >= HALVING_INTERVAL);
        if acts && !budget_empty && rested {
            self.halvings = self.halvings.saturating_add(1);
            self.last_halving = Some(now);
            self.event = Some(BrakeEvent::Halved);
        } else if !self.raised {
            self.event = Some(BrakeEvent::Raised);
        }
        self.raised = true;
    }

    /// What has happened since the last call of this, for the operator's eyes.
    pub const fn take_event(&mut self) -> Option<BrakeEvent> {
        self.event.take()
    }

    /// How often the edge's enforce share was halved.
    #[must_use]
    pub const fn halvings(&self) -> u8 {
        self.halvings
    }

    /// Whether the lower bound of the success of probes exceeds one half.
    ///
    /// The Wilson bound (z = 1.645) exceeds ½ iff 2k > n and (2k − n)² > z²·n, which needs no
    /// floats.
    fn suppression_is_costly(&self) -> bool {
        let (made, ok) = self
            .slots
            .iter()
            .fold((0, 0), |(made, ok), slot| (made + u64::from(slot.0), ok + u64::from(slot.1)));
        let Some(lead) = (2 * ok).checked_sub(made) else { return false };
        made >= PROBES_MIN && u128::from(lead).pow(2) * 1_000_000 > u128::from(made) * 2_706_025
    }

    fn advance(&mut self, now: Timestamp) {
        let slot = (now.as_nanos() / SLOT.as_nanos() as u64).max(self.slot);
        let expired = (slot - self.slot).min(SLOTS as u64);
        for step in 1..=expired {
            self.slots[((slot - expired + step) % SLOTS as u64) as usize] = (0, 0);
        }
        self.slot = slot;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_nanos(seconds * 1_000_000_000)
    }

    fn feed(brake: &mut Brake, n: u32, succeeded: bool, now: Timestamp) -> Option<BrakeEvent> {
        for _ in 0..n {
            brake.record(succeeded, false, false, now);
        }
        brake.take_event()
    }

    #[test]
    fn raised_where_the_lower_bound_exceeds_one_half() {
        // [brake-1]; Wilson 90 % lower bounds: 31/50 = 0.5038, 30/50 = 0.4840, 49 probes too few.
        for (n, ok, raised) in
            [(49, 49, false), (50, 30, false), (50, 31, true), (200, 111, false), (200, 112, true)]
        {
            let mut brake = Brake::default();
            // Failures first, so that the bound is crossed last if at all.
            feed(&mut brake, n - ok, false, at(0));
            assert_eq!(feed(&mut brake, ok, true, at(0)).is_some(), raised, "{ok} of {n}");
            assert_eq!(brake.halvings(), 0);
        }
    }

    #[test]
    fn event_is_raised_once_until_the_edge_recovers() {
        let mut brake = Brake::default();
        for (n, succeeded, seconds, event) in [
            (60, true, 0, Some(BrakeEvent::Raised)),
            (60, true, 1, None),
            (300, false, 2, None),
            (600, true, 3, Some(BrakeEvent::Raised)),
        ] {
            assert_eq!(feed(&mut brake, n, succeeded, at(seconds)), event, "at {seconds} s");
        }
    }

    #[test]
    fn halves_at_most_every_five_minutes_and_never_on_an_empty_budget() {
        let mut brake = Brake::default();
        for _ in 0..100 {
            brake.record(true, true, true, at(0));
        }
        assert_eq!(brake.halvings(), 0, "the budget is empty");
        for (seconds, halvings) in [(1, 1), (2, 1), (300, 1), (301, 2), (600, 2), (601, 3)] {
            brake.record(true, true, false, at(seconds));
            assert_eq!(brake.halvings(), halvings, "after {seconds} s");
        }
    }

    #[test]
    fn probes_are_forgotten_after_half_an_hour() {
        for (seconds, event) in [(1619, Some(BrakeEvent::Raised)), (1800, None)] {
            let mut brake = Brake::default();
            feed(&mut brake, 49, true, at(0));
            assert_eq!(feed(&mut brake, 1, true, at(seconds)), event, "after {seconds} s");
        }
    }
}
