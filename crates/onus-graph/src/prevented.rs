//! What ownership has prevented (protocol §12): requests that blind retries would have made, beside
//! those that were seen.

/// The retries that a policy would make of a call that keeps failing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Retries {
    /// The most attempts of a call.
    pub attempts: u32,
    /// The share of calls that a budget lets be retried; `None` without one.
    pub budget: Option<f64>,
}

/// The calls of one hop on the path from a root to the culprit, as they were seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Calls {
    /// Calls for one request of the caller.
    pub per_request: f64,
    /// Attempts of a call, on average.
    pub attempts: f64,
    /// Attempts of a call that ended ok, on average.
    pub attempts_when_ok: f64,
    /// The share of calls that failed for good.
    pub failed: f64,
    /// What the configured policies would do without ownership.
    pub retries: Retries,
}

/// The first attempts of the direct caller's calls, by which failures that last are told from those
/// that come and go.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attempts {
    /// The share of calls whose first attempt failed.
    pub first_failed: f64,
    /// The share of second attempts that failed.
    pub second_failed: f64,
}

/// Requests in the mesh for one request at the root that were prevented, by what is assumed of the
/// failures. The truth lies between the first two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prevented {
    /// Every attempt fails by itself.
    pub independent: f64,
    /// A call that failed for good would have failed however often it was tried.
    pub persistent: f64,
    /// A part of the failures lasts, as the first two attempts tell.
    pub mixture: f64,
}

impl Retries {
    /// Attempts of a call that fails in each of them, where this share of the calls does so: a
    /// budget is for all calls, and those that fail have it for themselves.
    fn made(self, failing: f64) -> f64 {
        let extra = f64::from(self.attempts.saturating_sub(1));
        let paid = self.budget.map_or(extra, |budget| match failing > 0.0 {
            true => (budget / failing).min(extra),
            false => extra,
        });
        1.0 + paid
    }
}

impl Attempts {
    /// The share of calls that fail persistently, and the chance of the other attempts to fail.
    fn mixture(self) -> (f64, f64) {
        let Self { first_failed: first, second_failed } = self;
        if first >= 1.0 {
            return (1.0, 0.0);
        }
        let both = first * second_failed;
        let lasting = ((both - first * first) / (1.0 + both - 2.0 * first)).clamp(0.0, 1.0);
        if lasting >= 1.0 {
            return (1.0, 0.0);
        }
        (lasting, ((first - lasting) / (1.0 - lasting)).clamp(0.0, 1.0))
    }
}

impl Prevented {
    /// What was prevented on a path of hops, the first one the root's; the callee of the last is
    /// the culprit, of whose calls `attempts` tells. Nothing on an empty path.
    #[must_use]
    pub fn on_path(path: &[Calls], attempts: Attempts) -> Self {
        let Some(last) = path.last() else {
            return Self { independent: 0.0, persistent: 0.0, mixture: 0.0 };
        };
        let seen = requests(path, |hop| hop.attempts);
        let seen_when_ok = requests(path, |hop| hop.attempts_when_ok);
        let without = |failing| counterfactual(path, failing);
        let (lasting, passing) = attempts.mixture();
        let persistent = last.failed * without(1.0) + (1.0 - last.failed) * seen_when_ok;
        Self {
            independent: without(attempts.first_failed) - seen,
            persistent: persistent - seen,
            mixture: lasting * without(1.0) + (1.0 - lasting) * without(passing) - seen,
        }
    }

    /// The retries that the direct caller alone was stopped from making, of so many suppressed
    /// calls.
    #[must_use]
    pub fn direct(suppressed: u64, retries: Retries, failing: f64) -> f64 {
        suppressed as f64 * (retries.made(failing) - 1.0)
    }
}

/// Requests in the mesh for one request at the root, itself included.
fn requests(path: &[Calls], attempts: impl Fn(&Calls) -> f64) -> f64 {
    path.iter().rev().fold(1.0, |below, hop| 1.0 + hop.per_request * attempts(hop) * below)
}

/// The same where every hop retries blindly and an attempt at the culprit fails with this chance.
fn counterfactual(path: &[Calls], failing: f64) -> f64 {
    let mut failing = failing;
    path.iter().rev().fold(1.0, |below, hop| {
        let made = hop.retries.made(failing);
        let passed_up = failing.powf(made);
        let attempts = match failing < 1.0 {
            true => (1.0 - passed_up) / (1.0 - failing),
            false => made,
        };
        failing = passed_up;
        1.0 + hop.per_request * attempts * below
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of so many hops whose last one retries, seen while the culprit fails every attempt.
    fn failing(hops: usize, retries: Retries) -> Vec<Calls> {
        let hop =
            Calls { per_request: 1.0, attempts: 1.0, attempts_when_ok: 1.0, failed: 1.0, retries };
        let mut path = vec![hop; hops];
        path[hops - 1].attempts = retries.made(1.0);
        path
    }

    #[test]
    fn per_failing_request_at_the_root() {
        // The figures of the spec's own model: R^d, and (1 + B)^d for budgets.
        let always = Attempts { first_failed: 1.0, second_failed: 1.0 };
        let two = Retries { attempts: 2, budget: None };
        let budget = Retries { attempts: 2, budget: Some(0.1) };
        for (hops, retries, expected) in [
            (4, two, 25.0),
            (5, two, 56.0),
            (4, budget, 1.0051),
            (5, budget, 1.61561),
            (9, budget, 5.8374),
        ] {
            let prevented = Prevented::on_path(&failing(hops, retries), always);
            for figure in [prevented.independent, prevented.persistent, prevented.mixture] {
                assert!((figure - expected).abs() < 1e-4, "{hops} hops: {prevented:?}");
            }
        }
        assert_eq!(Prevented::direct(200_000, two, 1.0), 200_000.0);
        let direct = Prevented::direct(200_000, budget, 0.5);
        assert!((direct - 40_000.0).abs() < 1e-6, "{direct}");
    }

    #[test]
    fn failures_that_last_are_told_from_those_that_pass() {
        for (lasting, passing) in [(0.0, 0.3), (0.05, 0.05), (0.5, 0.1), (1.0, 0.0), (0.2, 0.0)] {
            let first = lasting + (1.0 - lasting) * passing;
            let both: f64 = lasting + (1.0 - lasting) * passing * passing;
            let attempts = Attempts { first_failed: first, second_failed: both / first };
            let (found, rest) = attempts.mixture();
            assert!((found - lasting).abs() < 1e-9, "{lasting} {passing}: {found}");
            assert!((rest - passing).abs() < 1e-9, "{lasting} {passing}: {rest}");
        }
        let never = Attempts { first_failed: 0.0, second_failed: 0.0 };
        assert_eq!(never.mixture(), (0.0, 0.0));
    }

    #[test]
    fn independent_failures_prevent_least_and_persistent_ones_most() {
        let retries = Retries { attempts: 2, budget: None };
        let hop =
            Calls { per_request: 1.0, attempts: 1.0, attempts_when_ok: 1.0, failed: 0.0, retries };
        let mut path = vec![hop; 5];
        path[4] = Calls { attempts: 1.0975, attempts_when_ok: 1.05, failed: 0.052_375, ..hop };
        let attempts = Attempts { first_failed: 0.0975, second_failed: 0.052_375 / 0.0975 };
        let Prevented { independent, persistent, mixture } = Prevented::on_path(&path, attempts);
        assert!(
            independent < mixture && mixture < persistent,
            "{independent} {mixture} {persistent}"
        );
        // Of every twenty requests one fails for good, and 56 are prevented for it.
        assert!((mixture - 0.05 * 56.0).abs() < 0.01, "{mixture}");
    }
}
