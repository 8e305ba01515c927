//! Counts of calls that become deposits of a budget, without a lock on the success path.

use onus_core::{RetryBudget, Timestamp};

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(all(test, loom)))]
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls and successes of an edge since its start: only ever counted up.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    calls: AtomicU64,
    successes: AtomicU64,
}

/// What of a [`Tally`] a budget has been told; it lives beside the budget, under its lock.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    calls: u64,
    successes: u64,
}

impl Tally {
    pub(crate) fn call(&self) {
        // Relaxed: each count stands alone, and a budget that learns of a call a moment later is
        // still exact in total.
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Calls since the start.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    pub(crate) fn success(&self) {
        self.successes.fetch_add(1, Ordering::Relaxed);
    }
}

impl From<&Tally> for Drained {
    /// What a budget has been told that knows of everything so far.
    fn from(tally: &Tally) -> Self {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Self { calls: read(&tally.calls), successes: read(&tally.successes) }
    }
}

impl Drained {
    /// Tells `budget` what has been counted since the last time: each call once, none lost.
    pub(crate) fn drain(&mut self, tally: &Tally, budget: &mut RetryBudget, now: Timestamp) {
        let calls = tally.calls.load(Ordering::Relaxed);
        let successes = tally.successes.load(Ordering::Relaxed);
        budget.on_calls(calls.wrapping_sub(self.calls), now);
        budget.on_successes(successes.wrapping_sub(self.successes), now);
        *self = Self { calls, successes };
    }
}

#[cfg(test)]
mod tests {
    use onus_core::{BudgetConfig, Deposit};

    use super::*;

    /// A budget that gains one token with each call and none from the floor.
    fn one_token_a_call(deposit: Deposit) -> RetryBudget {
        RetryBudget::new(BudgetConfig {
            percent: 100,
            deposit,
            min_per_second: 0,
            ..BudgetConfig::default()
        })
    }

    #[cfg(not(loom))]
    #[test]
    fn each_count_is_told_once() {
        for deposit in [Deposit::Request, Deposit::Success] {
            let tally = Tally::default();
            let mut drained = Drained::default();
            let mut budget = one_token_a_call(deposit);
            for (calls, balance) in [(3, 3), (0, 3), (2, 5)] {
                for _ in 0..calls {
                    tally.call();
                    tally.success();
                }
                drained.drain(&tally, &mut budget, Timestamp::ZERO);
                assert_eq!(budget.balance(Timestamp::ZERO), balance);
            }
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn many_threads_lose_and_double_nothing() {
        // [budget-4] [budget-9]
        use std::sync::Mutex;

        const THREADS: u64 = 64;
        const CALLS: u64 = 500;
        for deposit in [Deposit::Request, Deposit::Success] {
            let tally = Tally::default();
            let edge = Mutex::new((Drained::default(), one_token_a_call(deposit)));
            let drain = || {
                let mut guard = edge.lock().unwrap();
                let (drained, budget) = &mut *guard;
                drained.drain(&tally, budget, Timestamp::ZERO);
                budget.balance(Timestamp::ZERO)
            };
            std::thread::scope(|scope| {
                for thread in 0..THREADS {
                    let (tally, drain) = (&tally, &drain);
                    scope.spawn(move || {
                        for call in 1..=CALLS {
                            tally.call();
                            tally.success();
                            if (call + thread) % 7 == 0 {
                                assert!(drain() >= call, "the thread's own calls are told");
                            }
                        }
                    });
                }
            });
            assert_eq!(drain(), THREADS * CALLS, "{deposit:?}");
        }
    }

    /// All interleavings of two callers and two drains: no deposit is lost, none is made twice.
    #[cfg(loom)]
    #[test]
    fn no_interleaving_loses_or_doubles_a_deposit() {
        for deposit in [Deposit::Request, Deposit::Success] {
            model(deposit);
        }
    }

    #[cfg(loom)]
    fn model(deposit: Deposit) {
        use loom::sync::{Arc, Mutex};

        loom::model(move || {
            let tally = Arc::new(Tally::default());
            let edge = Arc::new(Mutex::new((Drained::default(), one_token_a_call(deposit))));
            let drain = |tally: &Tally, edge: &Mutex<(Drained, RetryBudget)>| {
                let mut guard = edge.lock().unwrap();
                let (drained, budget) = &mut *guard;
                drained.drain(tally, budget, Timestamp::ZERO);
                budget.balance(Timestamp::ZERO)
            };
            let threads: Vec<_> = (0..2)
                .map(|_| {
                    let (tally, edge) = (tally.clone(), edge.clone());
                    loom::thread::spawn(move || {
                        tally.call();
                        tally.success();
                        // The caller's own call is in the budget by the time it asks.
                        assert!(drain(&tally, &edge) >= 1);
                    })
                })
                .collect();
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(drain(&tally, &edge), 2);
        });
    }
}
