//! What an operator or author types for a callee, and the check that turns it into what is meant.

use std::num::NonZeroU32;
use std::time::Duration;

use onus_core::{
    Backoff, BudgetConfig, Deposit, ErrorSet, MIN_ATTEMPT_TIME, RetryPolicy as CheckedPolicy,
};

/// The retries allowed towards a callee, as typed. Checked when the configuration is built.
///
/// Crate `onus` exports it too, as `onus::RetryPolicy`.
///
/// ```
/// use onus_agent::RetryPolicy;
/// use std::time::Duration;
///
/// let policy = RetryPolicy::attempts(3)
///     .budget_percent(20)
///     .per_try_timeout(Duration::from_millis(250));
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct RetryPolicy {
    attempts: u32,
    errors: ErrorSet,
    unsafe_methods: bool,
    backoff: (Duration, Duration),
    budget: Option<Budget>,
    gate: bool,
    probes: bool,
    min_attempt_time: Duration,
    pub(crate) stacked: bool,
    timeouts: Timeouts,
}

#[derive(Clone, Copy, Debug)]
struct Budget {
    percent: u32,
    deposit: Deposit,
    min_per_second: u32,
    ttl: Duration,
}

/// The time limits of a logical call; none unless configured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeouts {
    /// The longest that one attempt may take until its response head.
    pub per_try: Option<Duration>,
    /// The longest that all attempts together may take until a response head.
    pub overall: Option<Duration>,
}

/// A value in a policy that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {value}; allowed is {allowed}")]
pub struct PolicyError {
    /// The setting.
    pub field: &'static str,
    /// What was typed.
    pub value: String,
    /// What would be right.
    pub allowed: &'static str,
}

/// Attempts beyond this help no caller and multiply every fault.
const ATTEMPTS_MAX: u32 = 10;
const TTL_MAX: Duration = Duration::from_secs(600);
const FLOOR_MAX: u32 = 1000;
const BACKOFF_MAX: Duration = Duration::from_secs(60);
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

impl RetryPolicy {
    /// The preset `recommended`: three attempts, and the settings of [`attempts`](Self::attempts).
    pub fn recommended() -> Self {
        Self::attempts(CheckedPolicy::RECOMMENDED_ATTEMPTS)
    }

    /// A policy of at most `attempts` attempts, the first one included (1 to 10; 1 is no retry),
    /// with the efficacy gate, which makes fewer retries where few of them succeed, and with a
    /// budget even if none is named: one retry for two calls that ended ok, plus one per second
    /// while calls succeed, or one per 10 s while none does.
    pub fn attempts(attempts: u32) -> Self {
        Self {
            budget: Some(Budget::from(BudgetConfig::default())),
            gate: true,
            ..Self::articles(attempts)
        }
    }

    /// The preset `articles`, as it was published: a budget of 10 % of all calls, with the same
    /// floor, and no gate.
    pub fn articles(attempts: u32) -> Self {
        Self {
            attempts,
            errors: ErrorSet::failures(),
            unsafe_methods: false,
            backoff: (Duration::from_millis(25), Duration::from_millis(250)),
            budget: Some(Budget::from(BudgetConfig::ARTICLES)),
            gate: false,
            probes: true,
            min_attempt_time: MIN_ATTEMPT_TIME,
            stacked: false,
            timeouts: Timeouts::default(),
        }
    }

    /// Retries per hundred deposits, 0 to 100 (default 50; 10 in the preset `articles`).
    pub fn budget_percent(self, percent: u32) -> Self {
        self.budget(|budget| budget.percent = percent)
    }

    /// Fills the budget with calls that ended ok instead of all calls, so that an outage cannot
    /// feed its own retries: the default, but in the preset `articles`.
    pub fn budget_from_successes(self) -> Self {
        self.budget(|budget| budget.deposit = Deposit::Success)
    }

    /// Fills the budget with all calls, failed ones too, as the preset `articles` does.
    pub fn budget_from_calls(self) -> Self {
        self.budget(|budget| budget.deposit = Deposit::Request)
    }

    /// Retries per second that are allowed whatever the traffic, 0 to 1,000 (default 1): in full
    /// only while the edge had a success within the time of [`budget_ttl`](Self::budget_ttl), else
    /// one in that time. Zero: none.
    pub fn budget_min_per_second(self, retries: u32) -> Self {
        self.budget(|budget| budget.min_per_second = retries)
    }

    /// How long a deposit counts, in whole seconds from 1 to 600 (default 10).
    pub fn budget_ttl(self, ttl: Duration) -> Self {
        self.budget(|budget| budget.ttl = ttl)
    }

    /// No budget: every failed call may be retried. Of this and the settings of a budget, the last
    /// counts.
    pub fn no_budget(mut self) -> Self {
        self.budget = None;
        self
    }

    /// The errors to retry (default: every error of the protocol).
    pub fn errors(mut self, errors: ErrorSet) -> Self {
        self.errors = errors;
        self
    }

    /// Retries unsafe HTTP methods too (POST, PUT, PATCH, DELETE and all unknown ones): only for
    /// callees that do a repeated request once.
    pub fn unsafe_methods(mut self) -> Self {
        self.unsafe_methods = true;
        self
    }

    /// The wait before the first retry and the longest wait, up to 60 s (default 25 ms and
    /// 250 ms); the wait doubles with each retry and is drawn at random up to that.
    pub fn backoff(mut self, base: Duration, max: Duration) -> Self {
        self.backoff = (base, max);
        self
    }

    /// Makes fewer retries where few of them succeed (the efficacy gate of the protocol): the
    /// default, but in the preset `articles`.
    pub fn gate(mut self) -> Self {
        self.gate = true;
        self
    }

    /// Makes as many retries where few of them succeed.
    pub fn no_gate(mut self) -> Self {
        self.gate = false;
        self
    }

    /// Makes none of the suppressed retries, not even the few that measure what suppression costs.
    pub fn no_probes(mut self) -> Self {
        self.probes = false;
        self
    }

    /// The time that an attempt is assumed to need: none starts with less left (default 10 ms).
    pub fn min_attempt_time(mut self, time: Duration) -> Self {
        self.min_attempt_time = time;
        self
    }

    /// Ends an attempt that has no response head after `timeout`; the next may then be made.
    pub fn per_try_timeout(mut self, timeout: Duration) -> Self {
        self.timeouts.per_try = Some(timeout);
        self
    }

    /// Ends the call that has no response head after `deadline`, all attempts together.
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.timeouts.overall = Some(deadline);
        self
    }

    /// Allows this policy on a callee whose retries are declared to be made elsewhere too.
    pub fn stacked(mut self) -> Self {
        self.stacked = true;
        self
    }

    fn budget(mut self, set: impl FnOnce(&mut Budget)) -> Self {
        set(self.budget.get_or_insert_with(|| Budget::from(BudgetConfig::default())));
        self
    }

    /// The policy as meant: `None` for a single attempt, which is no retry.
    pub(crate) fn check(&self) -> Result<(Option<CheckedPolicy>, Timeouts), PolicyError> {
        within("attempts", self.attempts, 1, ATTEMPTS_MAX, "1 to 10")?;
        let (base, max) = self.backoff;
        within("backoff", max, base, BACKOFF_MAX, "a maximum from the base up to 60s")?;
        for (field, timeout) in
            [("per-try timeout", self.timeouts.per_try), ("deadline", self.timeouts.overall)]
        {
            let Some(timeout) = timeout else { continue };
            within(field, timeout, Duration::from_millis(1), TIMEOUT_MAX, "1ms to 24h")?;
        }
        if let (Some(per_try), Some(overall)) = (self.timeouts.per_try, self.timeouts.overall) {
            let allowed = "at most the deadline of the whole call";
            within("per-try timeout", per_try, Duration::ZERO, overall, allowed)?;
        }
        within("min attempt time", self.min_attempt_time, Duration::ZERO, TIMEOUT_MAX, "0 to 24h")?;
        let budget = self.budget.as_ref().map(Budget::check).transpose()?;
        let policy = CheckedPolicy::new(self.attempts).map(|mut policy| {
            policy.errors = self.errors;
            policy.unsafe_methods = self.unsafe_methods;
            policy.backoff = Backoff::new(base, max);
            policy.budget = budget;
            policy.gate = self.gate;
            policy.min_attempt_time = self.min_attempt_time;
            policy.probes = self.probes;
            policy
        });
        Ok((policy, self.timeouts))
    }
}

impl From<BudgetConfig> for Budget {
    fn from(budget: BudgetConfig) -> Self {
        Self {
            percent: budget.percent,
            deposit: budget.deposit,
            min_per_second: budget.min_per_second,
            ttl: Duration::from_secs(budget.ttl_seconds.get().into()),
        }
    }
}

impl Budget {
    fn check(&self) -> Result<BudgetConfig, PolicyError> {
        within("budget percent", self.percent, 0, 100, "0 to 100")?;
        within("budget min per second", self.min_per_second, 0, FLOOR_MAX, "0 to 1000")?;
        let allowed = "whole seconds from 1s to 600s";
        within("budget ttl", self.ttl, Duration::from_secs(1), TTL_MAX, allowed)?;
        let whole = self.ttl.subsec_nanos() == 0;
        let seconds = u32::try_from(self.ttl.as_secs()).ok().filter(|_| whole);
        let Some(ttl_seconds) = seconds.and_then(NonZeroU32::new) else {
            return Err(PolicyError {
                field: "budget ttl",
                value: format!("{:?}", self.ttl),
                allowed,
            });
        };
        Ok(BudgetConfig {
            percent: self.percent,
            deposit: self.deposit,
            min_per_second: self.min_per_second,
            ttl_seconds,
        })
    }
}

fn within<T: Copy + PartialOrd + std::fmt::Debug>(
    field: &'static str,
    value: T,
    min: T,
    max: T,
    allowed: &'static str,
) -> Result<(), PolicyError> {
    if value < min || value > max {
        return Err(PolicyError { field, value: format!("{value:?}"), allowed });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_named_with_its_range() {
        let ok = || RetryPolicy::attempts(2);
        let ms = Duration::from_millis;
        for (policy, message) in [
            (RetryPolicy::attempts(0), "attempts is 0; allowed is 1 to 10"),
            (RetryPolicy::attempts(11), "attempts is 11; allowed is 1 to 10"),
            (ok().budget_percent(1000), "budget percent is 1000; allowed is 0 to 100"),
            (
                ok().budget_min_per_second(1001),
                "budget min per second is 1001; allowed is 0 to 1000",
            ),
            (
                ok().budget_ttl(ms(1500)),
                "budget ttl is 1.5s; allowed is whole seconds from 1s to 600s",
            ),
            (
                ok().budget_ttl(Duration::ZERO),
                "budget ttl is 0ns; allowed is whole seconds from 1s to 600s",
            ),
            (
                ok().backoff(ms(50), ms(25)),
                "backoff is 25ms; allowed is a maximum from the base up to 60s",
            ),
            (ok().per_try_timeout(Duration::ZERO), "per-try timeout is 0ns; allowed is 1ms to 24h"),
            (
                ok().per_try_timeout(ms(200)).deadline(ms(100)),
                "per-try timeout is 200ms; allowed is at most the deadline of the whole call",
            ),
        ] {
            assert_eq!(policy.check().unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn one_attempt_is_no_policy() {
        assert_eq!(RetryPolicy::attempts(1).check().unwrap().0, None);
        assert_eq!(RetryPolicy::attempts(2).check().unwrap().0, CheckedPolicy::new(2));
        assert_eq!(RetryPolicy::recommended().check().unwrap().0, CheckedPolicy::new(3));
        assert_eq!(RetryPolicy::articles(2).check().unwrap().0, CheckedPolicy::articles(2));
    }

    #[test]
    fn every_setting_reaches_the_checked_policy() {
        let base = RetryPolicy::articles(3);
        let (meant, _) = base.check().unwrap();
        let ms = Duration::from_millis;
        for changed in [
            base.clone().budget_percent(11),
            base.clone().budget_from_successes(),
            base.clone().budget_min_per_second(2),
            base.clone().budget_ttl(Duration::from_secs(11)),
            base.clone().no_budget(),
            base.clone().errors(ErrorSet::EMPTY),
            base.clone().unsafe_methods(),
            base.clone().backoff(ms(1), ms(2)),
            base.clone().gate(),
            base.clone().no_probes(),
            base.clone().min_attempt_time(ms(11)),
        ] {
            assert_ne!(changed.check().unwrap().0, meant, "{changed:?}");
        }
        let recommended = RetryPolicy::attempts(3);
        let settings = base.clone().budget_percent(50).budget_from_successes().gate();
        assert_eq!(settings.check().unwrap(), recommended.check().unwrap());
        let back = recommended.budget_percent(10).budget_from_calls().no_gate();
        assert_eq!(back.check().unwrap(), base.check().unwrap());
        let timed = base.per_try_timeout(ms(5)).deadline(ms(9));
        let expected = Timeouts { per_try: Some(ms(5)), overall: Some(ms(9)) };
        assert_eq!(timed.check().unwrap().1, expected);
    }

    #[test]
    fn the_last_word_on_the_budget_counts() {
        let base = || RetryPolicy::attempts(2);
        let budget = |policy: RetryPolicy| policy.check().unwrap().0.unwrap().budget;
        assert_eq!(budget(base().budget_percent(5).no_budget()), None);
        assert_eq!(budget(base().no_budget().budget_percent(5)), budget(base().budget_percent(5)));
        let wrong = base().no_budget().budget_percent(1000).check();
        let says = "budget percent is 1000; allowed is 0 to 100";
        assert_eq!(wrong.unwrap_err().to_string(), says);
    }
}
