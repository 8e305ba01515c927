//! The budget against the worked example of the protocol, and against an exact model that keeps
//! every deposit and stops at every moment at which a rate or the capacity changes.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

/// A bucket that knows its whole history. Levels are in parts of a token: `100 · ttl` nanoseconds
/// make one, so that a percent of a token is a whole number.
#[derive(Clone)]
struct Model {
    config: BudgetConfig,
    now: u128,
    level: u128,
    /// When each deposit leaves the window, and how many calls it was for.
    deposits: Vec<(u128, u128)>,
    last_success: Option<u128>,
}

impl Model {
    fn new(config: BudgetConfig) -> Self {
        let mut model = Self { config, now: 0, level: 0, deposits: Vec::new(), last_success: None };
        model.level = if config.min_per_second > 0 { model.token() } else { 0 };
        model
    }

    fn ttl(&self) -> u128 {
        u128::from(self.config.ttl_seconds.get()) * 1_000_000_000
    }

    fn token(&self) -> u128 {
        100 * self.ttl()
    }

    fn is_fresh(&self, time: u128) -> bool {
        self.last_success.is_some_and(|success| time <= success + self.ttl())
    }

    /// Parts that the floor grants in the nanosecond that ends at `time`.
    fn rate(&self, time: u128) -> u128 {
        let floor = u128::from(self.config.min_per_second);
        match (floor, self.is_fresh(time)) {
            (0, _) => 0,
            (_, true) => self.token() * floor / 1_000_000_000,
            (_, false) => 100,
        }
    }

    fn capacity(&self, time: u128) -> u128 {
        let in_window = self.deposits.iter().filter(|(leaves, _)| time < *leaves);
        let calls: u128 = in_window.map(|(_, calls)| calls).sum();
        let floor = u128::from(self.config.min_per_second);
        let floor_tokens = match (floor, self.is_fresh(time)) {
            (0, _) => 0,
            (_, true) => floor * self.ttl() / 1_000_000_000,
            (_, false) => 1,
        };
        calls * u128::from(self.config.percent) * self.ttl() + floor_tokens * self.token()
    }

    /// The moments up to `time` at which the rate or the capacity changes, and `time`.
    fn changes(&self, time: u128) -> Vec<u128> {
        let fresh_until = self.last_success.map(|success| success + self.ttl());
        let mut changes: Vec<_> = self.deposits.iter().map(|(leaves, _)| *leaves).collect();
        changes.extend(fresh_until.into_iter().flat_map(|until| [until, until + 1]));
        changes.push(time);
        changes.retain(|change| self.now < *change && *change <= time);
        changes.sort_unstable();
        changes
    }

    fn advance(&mut self, time: u128) {
        for change in self.changes(time) {
            self.level += (change - self.now) * self.rate(change);
            self.now = change;
            self.level = self.level.min(self.capacity(change));
        }
    }

    fn report(&mut self, calls: u64, succeeded: bool, time: u128) {
        self.advance(time);
        if succeeded && calls > 0 {
            self.last_success = Some(self.now);
        }
        if succeeded == (self.config.deposit == Deposit::Success) {
            let calls = u128::from(calls);
            // In ten slots, the current one included: until the tenth slot after its own begins.
            let leaves = ((10 * self.now / self.ttl() + 10) * self.ttl()).div_ceil(10);
            self.deposits.push((leaves, calls));
            let percent = u128::from(self.config.percent);
            self.level = (self.level + calls * percent * self.ttl()).min(self.capacity(self.now));
        }
    }

    fn try_withdraw(&mut self, time: u128) -> bool {
        self.advance(time);
        let has_one = self.level >= self.token();
        if has_one {
            self.level -= self.token();
        }
        has_one
    }
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Calls(u64),
    Successes(u64),
    Withdraw,
    /// Withdrawals until one is denied, or so many were granted.
    Empty,
    Look,
}

/// How far the clock moves before an event, in nanoseconds; it may step back.
fn moves(ttl_seconds: u32) -> BoxedStrategy<i64> {
    let ttl = i64::from(ttl_seconds) * 1_000_000_000;
    prop_oneof![
        3 => Just(0_i64),
        2 => 1..1_000_i64,
        4 => 1..ttl / 10,
        2 => (0..25_i64, -1..=1_i64).prop_map(move |(slots, off)| slots * ttl / 10 + off),
        2 => (-1..=1_i64).prop_map(move |off| ttl + off),
        1 => -ttl..0_i64,
        1 => Just(5 * 365 * 86_400 * 1_000_000_000_i64),
    ]
    .boxed()
}

fn events() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0..2_000_u64).prop_map(Event::Calls),
        3 => (0..2_000_u64).prop_map(Event::Successes),
        1 => (0..5_u64).prop_map(Event::Calls),
        1 => (0..3_u64).prop_map(Event::Successes),
        8 => Just(Event::Withdraw),
        2 => Just(Event::Empty),
        1 => Just(Event::Look),
    ]
}

fn configs() -> impl Strategy<Value = BudgetConfig> {
    let percent = prop_oneof![Just(0), Just(10), Just(100), 0..=100_u32];
    let floor = prop_oneof![Just(0), Just(1), 0..=1_000_u32];
    let ttl = prop_oneof![Just(10), Just(1), 1..=600_u32];
    (percent, any::<bool>(), floor, ttl).prop_map(|(percent, success, min_per_second, ttl)| {
        BudgetConfig {
            percent,
            deposit: if success { Deposit::Success } else { Deposit::Request },
            min_per_second,
            ttl_seconds: NonZeroU32::new(ttl).expect("at least one second"),
        }
    })
}

fn histories() -> impl Strategy<Value = (BudgetConfig, Vec<(i64, Event)>)> {
    configs().prop_flat_map(|config| {
        let event = (moves(config.ttl_seconds.get()), events());
        (Just(config), prop::collection::vec(event, 1..60))
    })
}

/// The most withdrawals of one event.
const GRANTS_MAX: usize = 1_000;

fn at(time: i64) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(time).expect("the clock starts at zero"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    // [budget-2] [budget-4] [budget-5] [budget-6] [budget-7] [budget-8] [budget-9]
    #[test]
    fn agrees_with_the_model_to_the_unit((config, history) in histories()) {
        let mut budget = RetryBudget::new(config);
        let mut model = Model::new(config);
        prop_assert_eq!(u128::from(budget.level) * 100, model.level, "a new bucket");
        let mut time = 0_i64;
        for (n, (step, event)) in history.into_iter().enumerate() {
            time = time.saturating_add(step).max(0);
            let model_time = (time as u128).max(model.now);
            match event {
                Event::Calls(calls) => {
                    budget.on_calls(calls, at(time));
                    model.report(calls, false, model_time);
                }
                Event::Successes(calls) => {
                    budget.on_successes(calls, at(time));
                    model.report(calls, true, model_time);
                }
                Event::Withdraw => {
                    let expected = model.try_withdraw(model_time);
                    prop_assert_eq!(budget.try_withdraw(at(time)), expected, "event {}", n);
                }
                Event::Empty => {
                    // A budget is at its most exact where the next nanosecond makes a token.
                    for _ in 0..GRANTS_MAX {
                        let expected = model.try_withdraw(model_time);
                        prop_assert_eq!(budget.try_withdraw(at(time)), expected, "event {}", n);
                        if !expected {
                            break;
                        }
                    }
                }
                Event::Look => {
                    let mut looked_at = model.clone();
                    looked_at.advance(model_time);
                    let whole = u128::from(budget.balance(at(time)));
                    prop_assert_eq!(whole, looked_at.level / model.token(), "event {}", n);
                }
            }
            prop_assert_eq!(u128::from(budget.level) * 100, model.level, "event {}: {:?}", n, event);
        }
    }

    // [budget-9]
    #[test]
    fn looking_in_between_changes_nothing(
        (config, history) in histories(),
        looks in prop::collection::vec((0..60_usize, 0..1_000_i64), 0..60),
    ) {
        let mut watched = RetryBudget::new(config);
        let mut alone = watched.clone();
        let mut time = 0_i64;
        for (n, (step, event)) in history.into_iter().enumerate() {
            let next = time.saturating_add(step.max(0));
            for (_, share) in looks.iter().filter(|(of, _)| *of == n) {
                // A report of nothing moves the watched budget on.
                watched.on_calls(0, at(time + (next - time) / 1_000 * share));
            }
            time = next;
            for budget in [&mut watched, &mut alone] {
                match event {
                    Event::Calls(calls) => budget.on_calls(calls, at(time)),
                    Event::Successes(calls) => budget.on_successes(calls, at(time)),
                    Event::Withdraw | Event::Empty | Event::Look => {
                        let _ = budget.try_withdraw(at(time));
                    }
                }
            }
            prop_assert_eq!(watched.level, alone.level, "event {}", n);
        }
    }

    #[test]
    fn nothing_overflows(
        percent in any::<u32>(),
        min_per_second in any::<u32>(),
        ttl_seconds in any::<NonZeroU32>(),
        success in any::<bool>(),
        history in prop::collection::vec((any::<u64>(), any::<u64>()), 1..20),
    ) {
        let deposit = if success { Deposit::Success } else { Deposit::Request };
        let mut budget =
            RetryBudget::new(BudgetConfig { percent, deposit, min_per_second, ttl_seconds });
        for (calls, time) in history {
            let now = Timestamp::from_nanos(time);
            budget.on_calls(calls, now);
            budget.on_successes(calls, now);
            let before = budget.balance(now);
            let taken = budget.try_withdraw(now);
            prop_assert_eq!(budget.balance(now), before - u64::from(taken));
        }
    }
}

#[test]
fn a_million_looks_are_one() {
    // [budget-9]; the full floor ends in the middle.
    let config =
        BudgetConfig { min_per_second: 3, ttl_seconds: NonZeroU32::MIN, ..BudgetConfig::default() };
    let mut once = RetryBudget::new(config);
    once.on_calls(20, at(0));
    once.on_successes(1, at(0));
    for _ in 0..3 {
        once.try_withdraw(at(500_000_000));
    }
    let mut often = once.clone();
    for micros in 1..=1_000_000 {
        often.on_calls(0, at(500_000_000 + micros * 1_000));
    }
    once.on_calls(0, at(1_500_000_000));
    assert_eq!(often, once);
}

#[test]
fn worked_example_of_the_protocol() {
    // [budget-2] [budget-4] [budget-5] [budget-6] [budget-7] [budget-8]; levels in millions.
    let mut budget = RetryBudget::new(BudgetConfig::ARTICLES);
    let mut check =
        |millis: i64, act: fn(&mut RetryBudget, Timestamp) -> bool, granted, level: u64| {
            let seen = act(&mut budget, at(millis * 1_000_000));
            assert_eq!((seen, budget.level), (granted, level * 1_000_000), "at {millis} ms");
        };
    fn starts(budget: &mut RetryBudget, now: Timestamp) -> bool {
        budget.on_calls(1, now);
        true
    }
    fn retries(budget: &mut RetryBudget, now: Timestamp) -> bool {
        budget.try_withdraw(now)
    }
    fn ends_ok(budget: &mut RetryBudget, now: Timestamp) -> bool {
        budget.on_successes(1, now);
        true
    }
    fn looked_at(budget: &mut RetryBudget, now: Timestamp) -> bool {
        budget.advance(now);
        true
    }
    check(0, looked_at, true, 10_000);
    check(0, starts, true, 11_000);
    check(0, retries, true, 1_000);
    check(1_000, starts, true, 3_000);
    check(1_000, retries, false, 3_000);
    check(8_000, starts, true, 11_000);
    check(8_000, retries, true, 1_000);
    check(8_000, ends_ok, true, 1_000);
    check(8_500, starts, true, 7_000);
    check(8_500, retries, false, 7_000);
    check(9_000, starts, true, 13_000);
    check(9_000, retries, true, 3_000);
    check(5_000, looked_at, true, 3_000);
    check(20_000, looked_at, true, 10_000);
}
