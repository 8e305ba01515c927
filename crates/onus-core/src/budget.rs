//! The retry budget of one edge in one process (protocol §7): a token bucket in exact integers.
//!
//! The unit makes every rate a whole number. With a time to live of `ttl` (whole seconds), one
//! token is `ttl` in nanoseconds; then a call deposits `percent · ttl / 100` units, the full floor
//! grants `min_per_second · ttl_seconds` units each nanosecond, and the reduced floor of one token
//! per `ttl` grants one.

use core::num::NonZeroU32;

use crate::time::Timestamp;

/// What fills the bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Deposit {
    /// Each original call.
    Request,
    /// Each logical call that ended ok: no storm can feed its own budget.
    Success,
}

/// How an edge's retries are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BudgetConfig {
    /// Retries per hundred deposits.
    pub percent: u32,
    /// What fills the bucket.
    pub deposit: Deposit,
    /// Retries per second that are allowed whatever the traffic, in full only while the edge had
    /// a success within `ttl_seconds`, else one per `ttl_seconds`. Zero: none.
    pub min_per_second: u32,
    /// How long a deposit counts, in seconds.
    pub ttl_seconds: NonZeroU32,
}

impl BudgetConfig {
    /// As the articles have it: 10 % of requests, at least one retry per second, remembered for
    /// 10 s.
    pub const ARTICLES: Self =
        Self { percent: 10, deposit: Deposit::Request, min_per_second: 1, ttl_seconds: TEN };
}

impl Default for BudgetConfig {
    /// Half of the calls that ended ok, at least one retry per second, remembered for 10 s: an
    /// outage empties it, and errors that come and go do not.
    fn default() -> Self {
        Self { percent: 50, deposit: Deposit::Success, ..Self::ARTICLES }
    }
}

const TEN: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// The window of `ttl` moves in steps of a tenth.
const SLOTS: usize = 10;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A token bucket that holds `percent` of the deposits of the last `ttl` plus the floor for `ttl`.
///
/// Only retries withdraw; a token is not given back. A new bucket is empty but for one token of
/// the floor. A clock that steps back is read as standing still.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RetryBudget {
    config: BudgetConfig,
    /// Units in the bucket.
    level: u64,
    now: Timestamp,
    last_success: Option<Timestamp>,
    /// Deposits per tenth of `ttl`, a ring over slot numbers.
    deposits: [u64; SLOTS],
    /// The sum of `deposits`.
    window: u64,
    /// The number of the slot that `now` lies in.
    slot: u64,
}

impl RetryBudget {
    /// A new bucket: empty but for one token, none where the floor is zero.
    #[must_use]
    pub fn new(config: BudgetConfig) -> Self {
        let mut budget = Self {
            config,
            level: 0,
            now: Timestamp::ZERO,
            last_success: None,
            deposits: [0; SLOTS],
            window: 0,
            slot: 0,
        };
        budget.level = budget.capacity();
        budget
    }

    /// Takes in `calls` original calls made since the last report.
    pub fn on_calls(&mut self, calls: u64, now: Timestamp) {
        self.advance(now);
        if self.config.deposit == Deposit::Request {
            self.deposit(calls);
        }
    }

    /// Takes in `calls` logical calls that ended ok since the last report.
    pub fn on_successes(&mut self, calls: u64, now: Timestamp) {
        self.advance(now);
        if calls == 0 {
            return;
        }
        self.last_success = Some(self.now);
        if self.config.deposit == Deposit::Success {
            self.deposit(calls);
        }
    }

    /// Withdraws one token; `false` if there is none.
    pub fn try_withdraw(&mut self, now: Timestamp) -> bool {
        self.advance(now);
        match self.level.checked_sub(self.token()) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }

    /// Whole tokens that could be withdrawn at `now`.
    #[must_use]
    pub fn balance(&self, now: Timestamp) -> u64 {
        let mut at = self.clone();
        at.advance(now);
        at.level / at.token()
    }

    /// Moves time on: forgets deposits older than `ttl`, grants the floor, caps the level.
    ///
    /// Without a deposit the capacity never grows, so capping once at the end equals capping at
    /// every instant in between: the result does not depend on how often this is called.
    fn advance(&mut self, now: Timestamp) {
        if now <= self.now {
            return;
        }
        let granted = self.floor_granted(now);
        self.level = self.level.saturating_add(granted);
        let width = self.token() / SLOTS as u64;
        if now.as_nanos() >= (self.slot + 1).saturating_mul(width) {
            self.forget_before(now.as_nanos() / width);
        }
        self.now = now;
        self.level = self.level.min(self.capacity());
    }

    /// Makes `slot` the current one and forgets the deposits that are then older than `ttl`.
    fn forget_before(&mut self, slot: u64) {
        let expired = (slot - self.slot).min(SLOTS as u64);
        for step in 1..=expired {
            let at = ((slot - expired + step) % SLOTS as u64) as usize;
            self.window -= core::mem::take(&mut self.deposits[at]);
        }
        self.slot = slot;
    }

    /// Units that the floor grants between the last report and `now`.
    fn floor_granted(&self, now: Timestamp) -> u64 {
        let elapsed = now.as_nanos() - self.now.as_nanos();
        if self.config.min_per_second == 0 {
            return 0;
        }
        let full = self.full_floor_until().min(now.as_nanos()).saturating_sub(self.now.as_nanos());
        let full_rate =
            u64::from(self.config.min_per_second) * u64::from(self.config.ttl_seconds.get());
        full.saturating_mul(full_rate).saturating_add(elapsed - full)
    }

    /// The end of the time for which the floor is granted in full, in nanoseconds; zero without
    /// a success.
    fn full_floor_until(&self) -> u64 {
        self.last_success.map_or(0, |at| at.as_nanos().saturating_add(self.token()))
    }

    fn deposit(&mut self, calls: u64) {
        // What would pass the sum's range is not deposited, so that the window stays the sum.
        let calls = calls.min(u64::MAX - self.window);
        self.deposits[(self.slot % SLOTS as u64) as usize] += calls;
        self.window += calls;
        let units = calls.saturating_mul(self.deposit_units());
        self.level = self.level.saturating_add(units).min(self.capacity());
    }

    /// The most that the bucket holds, in units.
    fn capacity(&self) -> u64 {
        let floor_tokens = if self.config.min_per_second == 0 {
            0
        } else if self.last_success.is_some() && self.now.as_nanos() <= self.full_floor_until() {
            u64::from(self.config.min_per_second) * u64::from(self.config.ttl_seconds.get())
        } else {
            1
        };
        let floor = floor_tokens.saturating_mul(self.token());
        self.window.saturating_mul(self.deposit_units()).saturating_add(floor)
    }

    /// Units in one token: `ttl` in nanoseconds.
    const fn token(&self) -> u64 {
        self.config.ttl_seconds.get() as u64 * NANOS_PER_SECOND
    }

    /// Units that one call deposits.
    const fn deposit_units(&self) -> u64 {
        (self.token() / 100).saturating_mul(self.config.percent as u64)
    }
}

#[cfg(test)]
mod tests;
