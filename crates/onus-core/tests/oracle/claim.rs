//! [`InboundCall::claim`] over requests of up to three calls.

use onus_core::{
    Arm, CalleeClaim, Circumstances, Claim, EdgeClass, EdgeId, InboundCall, Stop, Tries,
};

use super::claim_rules::{Answer, Call, Request, answer};

const CLASSES: [EdgeClass; 3] = [EdgeClass::FailClose, EdgeClass::FailOpen, EdgeClass::Unknown];

/// How a call stands when the answer is made.
#[derive(Clone, Copy, Debug)]
enum End {
    Open,
    Abandoned,
    Ok,
    Closed,
    Failed(Stop),
}

fn ends() -> impl Iterator<Item = End> {
    let without_failure = [End::Open, End::Abandoned, End::Ok, End::Closed];
    without_failure.into_iter().chain(Stop::ALL.into_iter().map(End::Failed))
}

#[derive(Clone, Copy, Debug)]
struct Made {
    class: EdgeClass,
    end: End,
    tries: Tries,
}

/// Every class with every end.
fn classes_and_ends() -> Vec<(EdgeClass, End)> {
    CLASSES.into_iter().flat_map(|class| ends().map(move |end| (class, end))).collect()
}

/// Every value of [`Tries`] that the claim could look at.
fn every_tries() -> Vec<Tries> {
    let mut all = Vec::new();
    let reads = CalleeClaim::ALL.into_iter().map(Some).chain([None]);
    for last in reads {
        for shadow in [None, Some(Stop::Suppressed), Some(Stop::Marked), Some(Stop::Gated)] {
            for attempts in 0..3 {
                for bits in 0..8 {
                    let bit = |n: u32| bits >> n & 1 == 1;
                    all.push(Tries {
                        attempts,
                        sent: attempts,
                        in_attempt: bit(0),
                        last,
                        replied: bit(1),
                        probed: bit(2),
                        shadow,
                    });
                }
            }
        }
    }
    all
}

/// One value of [`Tries`] for each way in which a call can stand.
fn typical_tries() -> Vec<Tries> {
    let tries = |attempts, last: Option<CalleeClaim>, replied| Tries {
        attempts,
        sent: attempts,
        last,
        replied,
        ..Tries::default()
    };
    let under_way = |tries| Tries { in_attempt: true, ..tries };
    vec![
        tries(0, None, false),
        tries(1, Some(CalleeClaim::CLAIMED), true),
        tries(1, Some(CalleeClaim::Missing), true),
        tries(1, Some(CalleeClaim::Silent), false),
        under_way(tries(1, None, false)),
        tries(2, Some(CalleeClaim::UNCLAIMED), true),
        tries(2, Some(CalleeClaim::Silent), false),
        under_way(tries(2, Some(CalleeClaim::CLAIMED), true)),
        Tries { shadow: Some(Stop::Suppressed), ..tries(1, Some(CalleeClaim::UNCLAIMED), true) },
    ]
}

fn circumstances() -> impl Iterator<Item = (bool, Circumstances)> {
    (0..16).map(|bits| {
        let bit = |n: u32| bits >> n & 1 == 1;
        let at = Circumstances { shield: bit(3), silent_claims: bit(1), untied_calls: bit(2) };
        (bit(0), at)
    })
}

fn shipped(calls: &[Made], arm: Arm, marked: bool, at: Circumstances) -> Option<Answer> {
    let mut request = InboundCall::new(arm, marked);
    let slots: Vec<_> = (0..)
        .map(EdgeId)
        .zip(calls)
        .map(|(edge, call)| {
            let slot = request.on_started(edge, call.class).expect("three calls fit");
            request.on_attempt(slot, &call.tries);
            match call.end {
                End::Open => {}
                End::Abandoned => request.on_abandoned(slot),
                End::Ok => request.on_ok(slot),
                End::Closed => {
                    request.on_ok(slot);
                    request.on_closed(slot);
                }
                End::Failed(stop) => request.on_failed(slot, stop),
            }
            slot
        })
        .collect();
    let verdict = request.claim(at)?;
    let claim = match verdict.claim {
        Claim::Claimed => "claimed",
        Claim::ClaimedSilent => "claimed;kind=silent",
        Claim::Unclaimed => "unclaimed",
        Claim::UnclaimedShield => "unclaimed;kind=shield",
    };
    let number = |deciding| slots.iter().position(|slot| *slot == deciding).expect("one of them");
    let deciding = verdict.deciding.map(number);
    Some((claim, verdict.reason.as_str(), deciding, verdict.vetoes))
}

fn spell(call: &Made) -> Call {
    let Made { class, end, tries } = call;
    Call {
        class: class.as_str(),
        end: match end {
            End::Open | End::Abandoned => "dropped",
            End::Ok | End::Closed => "ok",
            End::Failed(stop) => stop.as_str(),
        },
        attempts: tries.attempts,
        read: if tries.in_attempt { Some("silent") } else { tries.last.map(CalleeClaim::as_str) },
        got_a_reply: tries.replied,
        shadow: tries.shadow.map(Stop::as_str),
        probed: tries.probed,
    }
}

fn check(calls: &[Made], arms: &[Arm]) {
    let mut request = Request {
        mode: "",
        marked: false,
        shield: false,
        silent_claims: false,
        untied_calls: false,
        calls: calls.iter().map(spell).collect(),
    };
    for (marked, at) in circumstances() {
        request.marked = marked;
        request.shield = at.shield;
        request.silent_claims = at.silent_claims;
        request.untied_calls = at.untied_calls;
        for arm in arms {
            request.mode = arm.as_str();
            let expected = answer(&request);
            let found = shipped(calls, *arm, marked, at);
            assert_eq!(found, expected, "{calls:#?} {arm:?} marked: {marked} {at:?}");
        }
    }
}

// The sentences that these enumerations prove:
// [claim-1] [claim-2] [claim-3] [claim-4] [claim-5] [claim-6] [claim-7] [claim-8] [claim-10]
// [drop-1] [drop-2] [drop-3] [drop-4] [drop-5] [criteria-1] [criteria-2] [criteria-3]
// [criteria-4] [mode-2] [mode-4] [mode-6] [wire-11] [wire-12] [wire-13] [shield-1]

#[test]
fn no_call() {
    check(&[], &[Arm::Off, Arm::Observe, Arm::Control, Arm::Enforce]);
}

#[test]
fn every_single_call() {
    for (class, end) in classes_and_ends() {
        for tries in every_tries() {
            let call = Made { class, end, tries };
            check(&[call], &[Arm::Off, Arm::Observe, Arm::Control, Arm::Enforce]);
        }
    }
}

#[test]
fn every_pair_of_typical_calls() {
    let calls: Vec<_> = classes_and_ends()
        .into_iter()
        .flat_map(|(class, end)| {
            typical_tries().into_iter().map(move |tries| Made { class, end, tries })
        })
        .collect();
    for first in &calls {
        for second in &calls {
            check(&[*first, *second], &[Arm::Enforce]);
        }
    }
}

#[test]
fn every_three_classes_and_ends() {
    let kinds = classes_and_ends();
    let tries = typical_tries();
    // Strides prime to the number of kinds: each three kinds meet another three tries.
    let made = |(n, (class, end)): (usize, (EdgeClass, End)), stride: usize| Made {
        class,
        end,
        tries: tries[(n * stride + n / tries.len()) % tries.len()],
    };
    let kinds = || kinds.iter().copied().enumerate();
    for first in kinds() {
        for second in kinds() {
            for third in kinds() {
                let at = first.0 + second.0 + third.0;
                let calls =
                    [made(first, 1 + at % 4), made(second, 5 + at % 2), made(third, 7 + at % 3)];
                check(&calls, &[Arm::Enforce]);
            }
        }
    }
}
