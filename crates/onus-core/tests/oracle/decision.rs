//! [`decide`] and [`decide_unsuppressed`] over every combination of facts, ownership and token.

use std::cell::Cell;

use onus_core::{CalleeClaim, Facts, Ownership, PushbackFact, Stop, decide, decide_unsuppressed};

use super::retry_rules::{Spelt, stop};

/// Calls `each` with every value of [`Facts`].
fn every_facts(mut each: impl FnMut(Facts)) {
    let pushbacks = [PushbackFact::None, PushbackFact::Refused, PushbackFact::TooLong];
    for claim in CalleeClaim::ALL {
        for pushback in pushbacks {
            for bits in 0..1 << 7 {
                let bit = |n: u32| bits >> n & 1 == 1;
                each(Facts {
                    claim,
                    pushback,
                    trusted: bit(0),
                    covered: bit(1),
                    marked: bit(2),
                    replayable: bit(3),
                    attempts_left: bit(4),
                    time_left: bit(5),
                    gate_open: bit(6),
                });
            }
        }
    }
}

fn spell(facts: &Facts, ownership: Ownership, token: bool) -> Spelt {
    let yes = |fact| if fact { '+' } else { '-' };
    Spelt {
        claim: match facts.claim.as_str() {
            "claimed" => 'c',
            "claimed-silent" => 's',
            "unclaimed" => 'u',
            "unclaimed-shield" => 'h',
            "missing" => 'm',
            "silent" => 'n',
            other => panic!("{other} is no claim of the protocol"),
        },
        pushback: match facts.pushback {
            PushbackFact::None => '.',
            PushbackFact::Refused => 'r',
            PushbackFact::TooLong => 'l',
        },
        trusted: yes(facts.trusted),
        covered: yes(facts.covered),
        marked: yes(facts.marked),
        replayable: yes(facts.replayable),
        attempts_left: yes(facts.attempts_left),
        time_left: yes(facts.time_left),
        gate_open: yes(facts.gate_open),
        ownership: match ownership {
            Ownership::Enforced => 'E',
            Ownership::Observed => 'O',
        },
        token: yes(token),
    }
}

#[test]
fn every_combination_of_facts() {
    // [decide-1] [decide-2] [decide-3] [decide-4] [decide-5] [decide-6] [decide-7] [decide-8]
    // [decide-9] [decide-10] [decide-11] [decide-12] [mode-5] [probe-1] [budget-2]
    let mut combinations = 0;
    every_facts(|facts| {
        for ownership in [Ownership::Enforced, Ownership::Observed] {
            for token in [true, false] {
                combinations += 1;
                let spelt = spell(&facts, ownership, token);
                let asked = Cell::new(0);
                let take_token = || {
                    asked.set(asked.get() + 1);
                    token
                };
                let shipped = decide(&facts, ownership, take_token).err().map(Stop::as_str);
                let expected = stop(&spelt, 1);
                assert_eq!(shipped, expected, "{facts:?} {ownership:?} token: {token}");
                // A token is taken only where nothing else stops the retry.
                let row_9 = expected.is_none() || expected == Some("budget-denied");
                assert_eq!(asked.get(), u32::from(row_9), "{facts:?} {ownership:?}");

                let probe = decide_unsuppressed(&facts, ownership, || token).err();
                let expected = stop(&spelt, 2);
                assert_eq!(probe.map(Stop::as_str), expected, "probe: {facts:?} {ownership:?}");
            }
        }
    });
    assert_eq!(combinations, 6 * 3 * 128 * 2 * 2);
}

#[test]
fn oracle_knows_every_reason() {
    let mut reasons = std::collections::BTreeSet::new();
    every_facts(|facts| {
        for token in [true, false] {
            reasons.extend(stop(&spell(&facts, Ownership::Enforced, token), 1));
        }
    });
    let names: std::collections::BTreeSet<_> = Stop::ALL.into_iter().map(Stop::as_str).collect();
    assert_eq!(reasons, names);
}
