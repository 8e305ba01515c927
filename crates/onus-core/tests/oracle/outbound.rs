//! [`OutboundCall::on_failure`] over combinations of what a host reports and what is configured:
//! the facts are found as the protocol says, and the verdict follows from them.

use std::time::Duration;

use onus_core::{
    Arm, Backoff, BudgetConfig, CallError, CalleeClaim, Claim, DeclaredRetries, Deposit, Draw,
    EdgePolicy, EdgeState, ErrorSet, Failure, Gate, MethodKind, OutboundCall, Pushback, RetryCause,
    RetryPolicy, Terms, Timestamp, Verdict,
};

use super::retry_rules::{Spelt, stop};

/// One combination: what is configured, what the request is, and how its first attempt failed.
#[derive(Clone, Copy, Debug)]
struct Case {
    arm: Arm,
    trusted: bool,
    has_policy: bool,
    gate_closed: bool,
    declared: bool,
    probes: bool,
    tokens: Tokens,
    marked: bool,
    left: Option<u64>,
    error: CallError,
    claim: Option<Claim>,
    attempt: Option<u32>,
    pushback: Pushback,
    replayable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tokens {
    NoLimit,
    None,
    One,
}

/// What the protocol says to a case.
#[derive(Debug, PartialEq)]
struct Expected {
    verdict: &'static str,
    shadow: Option<&'static str>,
    attempts: u32,
    mark: bool,
    tokens_taken: u64,
}

const MS: u64 = 1_000_000;
/// Covered by the policy, and not.
const COVERED: CallError = CallError::Http(503);
const EXCLUDED: CallError = CallError::Http(502);

fn every_case(mut each: impl FnMut(Case)) {
    let arms = [Arm::Off, Arm::Observe, Arm::Control, Arm::Enforce];
    let errors = [COVERED, EXCLUDED, CallError::Timeout];
    let claims = [
        None,
        Some(Claim::Claimed),
        Some(Claim::ClaimedSilent),
        Some(Claim::Unclaimed),
        Some(Claim::UnclaimedShield),
    ];
    let after = |ms| Pushback::After(Duration::from_millis(ms));
    let refused_after = |ms| Pushback::RefusedAfter(Duration::from_millis(ms));
    let pushbacks = [
        Pushback::None,
        Pushback::Refused,
        after(1),
        after(40),
        after(2_000),
        refused_after(40),
        refused_after(2_000),
    ];
    // No deadline; too little for an attempt; enough, but not for the longer wait; plenty.
    let lefts = [None, Some(5 * MS), Some(45 * MS), Some(1_000 * MS)];
    for arm in arms {
        for bits in 0..128 {
            let bit = |n: u32| bits >> n & 1 == 1;
            for tokens in [Tokens::NoLimit, Tokens::None, Tokens::One] {
                for left in lefts {
                    for error in errors {
                        for claim in claims {
                            for attempt in [None, Some(1), Some(2)] {
                                for pushback in pushbacks {
                                    each(Case {
                                        arm,
                                        trusted: bit(0),
                                        has_policy: bit(1),
                                        gate_closed: bit(2),
                                        declared: bit(3),
                                        probes: bit(4),
                                        marked: bit(5),
                                        replayable: bit(6),
                                        tokens,
                                        left,
                                        error,
                                        claim,
                                        attempt,
                                        pushback,
                                    });
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn expected(case: &Case) -> Expected {
    let reads = case.trusted && case.arm != Arm::Off;
    let claim = match (case.error, case.claim) {
        (CallError::Timeout, _) => 'n',
        (_, None) => 'm',
        (_, Some(_)) if !reads => 'm',
        (_, Some(Claim::Claimed)) => 'c',
        (_, Some(Claim::ClaimedSilent)) => 's',
        (_, Some(Claim::Unclaimed)) => 'u',
        (_, Some(Claim::UnclaimedShield)) => 'h',
    };
    let reported = case.attempt.filter(|_| reads);
    let attempts = match reported {
        Some(attempt) => attempt.max(1),
        // Two are declared for the layer below, for every error.
        None if case.declared => 2,
        None => 1,
    };
    let made = if case.declared { 1 } else { attempts };
    let asked = match case.pushback {
        Pushback::After(wait) | Pushback::RefusedAfter(wait) => wait.as_nanos() as u64,
        Pushback::None | Pushback::Refused => 0,
    };
    let fits = |time: u64| case.left.is_none_or(|left| time <= left);
    let yes = |fact| if fact { '+' } else { '-' };
    let facts = Spelt {
        claim,
        pushback: match case.pushback {
            Pushback::Refused => 'r',
            // Beside an unclaimed error the refusal is a veto, and only the wait is meant.
            Pushback::RefusedAfter(_) if !matches!(claim, 'u' | 'h') => 'r',
            Pushback::After(_) | Pushback::RefusedAfter(_) if !fits(asked) => 'l',
            Pushback::None | Pushback::After(_) | Pushback::RefusedAfter(_) => '.',
        },
        trusted: yes(case.trusted),
        covered: yes(case.has_policy && case.error != EXCLUDED),
        marked: yes(case.marked),
        replayable: yes(case.replayable),
        attempts_left: yes(made < 2),
        time_left: yes(fits(asked + 10 * MS)),
        gate_open: yes(!case.gate_closed),
        ownership: if case.arm == Arm::Enforce { 'E' } else { 'O' },
        token: yes(case.tokens != Tokens::None),
    };
    let decided = stop(&facts, 1);
    let may_probe =
        case.arm == Arm::Enforce && case.probes && case.has_policy && !case.marked && claim == 'u';
    let probes = decided == Some("suppressed") && may_probe && stop(&facts, 2).is_none();
    let observes = case.arm == Arm::Observe || case.arm == Arm::Control;
    let enforced = stop(&Spelt { ownership: 'E', token: '+', ..facts }, 1);
    let of_ownership = ["suppressed", "marked", "gated"];
    let goes_on = decided.is_none() || probes;
    Expected {
        verdict: if probes { "probe" } else { decided.unwrap_or("retry") },
        shadow: enforced.filter(|stop| observes && of_ownership.contains(stop)),
        attempts,
        mark: case.arm != Arm::Off && (case.marked || "smn".contains(claim)),
        tokens_taken: u64::from(goes_on && case.tokens == Tokens::One),
    }
}

/// The edges of every configuration of a gate, budgets and policy, made once: making a gate close
/// takes a hundred retries.
struct Edges {
    closed: Gate,
}

impl Edges {
    fn new() -> Self {
        let mut closed = Gate::new();
        for _ in 0..200 {
            closed.record(false);
        }
        Self { closed }
    }

    fn policy_and_state(&self, case: &Case) -> (EdgePolicy, EdgeState) {
        let retry = case.has_policy.then(|| {
            let mut retry = RetryPolicy::new(2).expect("two attempts are a policy");
            retry.errors.remove(EXCLUDED);
            retry.backoff = Backoff::NONE;
            retry.gate = true;
            retry.probes = case.probes;
            retry.budget = match case.tokens {
                Tokens::NoLimit => None,
                Tokens::None => Some(budget(0)),
                Tokens::One => Some(budget(1)),
            };
            retry
        });
        let errors = ErrorSet::failures();
        let declared = case.declared.then_some(DeclaredRetries { attempts: 2, errors });
        let policy = EdgePolicy { retry, declared, trusted: case.trusted, ..EdgePolicy::default() };
        let mut state = EdgeState::new(&policy);
        if case.gate_closed {
            state.gate = self.closed;
        }
        (policy, state)
    }
}

fn budget(min_per_second: u32) -> BudgetConfig {
    BudgetConfig {
        percent: 0,
        deposit: Deposit::Request,
        min_per_second,
        ..BudgetConfig::default()
    }
}

fn shipped(case: &Case, edges: &Edges) -> Expected {
    let (policy, mut edge) = edges.policy_and_state(case);
    let now = Timestamp::from_nanos(7 * MS);
    let mut call = OutboundCall::new(Terms {
        arm: case.arm,
        marked: case.marked,
        method: MethodKind::Safe,
        deadline: case.left.map(|left| now.saturating_add(Duration::from_nanos(left))),
    });
    call.on_sent();
    let failure = Failure {
        error: case.error,
        claim: case.claim,
        attempt: case.attempt,
        pushback: case.pushback,
        replayable: case.replayable,
        body_broke: false,
    };
    let tokens = |edge: &EdgeState| edge.budget.as_ref().map_or(0, |budget| budget.balance(now));
    let before = tokens(&edge);
    // A closed gate does not let this draw pass, and a probe is always due.
    let draw = Draw::from_bits(0xffff);
    let verdict = call.on_failure(&failure, &policy, &mut edge, now, draw);
    let shadow = call.tries().shadow;
    if let Verdict::Retry(retry) = verdict {
        assert_eq!(retry.shadow, shadow, "{case:?}");
        let read = call.tries().last.expect("an attempt has ended");
        let probe = retry.cause == RetryCause::Probe;
        assert!(probe || retry.cause == RetryCause::Claim(read), "{case:?}");
        assert_eq!(read == CalleeClaim::Silent, case.error == CallError::Timeout, "{case:?}");
        let asked = match case.pushback {
            Pushback::After(wait) | Pushback::RefusedAfter(wait) => wait,
            Pushback::None | Pushback::Refused => Duration::ZERO,
        };
        assert_eq!(retry.after, asked, "{case:?}");
    }
    Expected {
        verdict: match verdict {
            Verdict::Retry(retry) if retry.cause == RetryCause::Probe => "probe",
            Verdict::Retry(_) => "retry",
            Verdict::Stop(stop) => stop.as_str(),
        },
        shadow: shadow.map(|stop| stop.as_str()),
        attempts: call.tries().attempts,
        mark: call.mark(),
        tokens_taken: before - tokens(&edge),
    }
}

#[test]
fn every_first_failure() {
    // [decide-1] [decide-2] [decide-3] [decide-4] [decide-5] [decide-6] [decide-7] [decide-8]
    // [decide-9] [decide-10] [decide-11] [decide-12] [decide-14] [attempt-3] [attempt-4]
    // [mark-1] [mark-3] [mark-4] [mode-2] [mode-3] [mode-5] [mode-6] [trust-2] [budget-2]
    // [probe-1] [probe-2] [probe-4]
    let edges = Edges::new();
    let mut cases = 0;
    every_case(|case| {
        // Without a policy there is no gate to close and no budget to empty.
        if !case.has_policy && (case.gate_closed || case.tokens != Tokens::NoLimit) {
            return;
        }
        cases += 1;
        assert_eq!(shipped(&case, &edges), expected(&case), "{case:#?}");
    });
    assert_eq!(cases, 4 * 16 * (3 * 2 + 1) * 4 * 3 * 5 * 3 * 7 * 2);
}
