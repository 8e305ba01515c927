//! The tables of the callee: which dropped calls count, what is claimed, and what is sent.

use onus_core::{
    Arm, CalleeClaim, Circumstances, Claim, ClaimReason, ClaimVerdict, EdgeClass, EdgeId,
    InboundCall, SlotId, Stop, Tries,
};

use super::fold::{Function, Variable, choices, table};

pub(crate) fn tables() -> String {
    let mut text = String::from(
        "## Dropped calls\n\nA call without an outcome when the handler answers with an error. \
         *Shadow stop*: its caller observes, and enforcing would have stopped it.\n\n",
    );
    text += &dropped_table();
    text += "\n## Claim decision\n\nWhen a handler answers with an error; calls in flight are \
             among the failed. *Silence*: a blamed call ended missing, silent or claimed-silent. \
             *Only silence*: blamed calls made an attempt, and none got a reply.\n\n";
    text += &claim_table();
    text += "\n## What is sent\n\n";
    text += &sent_table();
    text
}

/// How an outbound call can stand, and what the claim table says of it.
struct Call {
    class: EdgeClass,
    tries: Tries,
    /// The stop with which it failed; none if it ended ok.
    stop: Option<Stop>,
    blamed: bool,
    met: bool,
    silence: bool,
    only_silence: bool,
    sent: bool,
}

impl Call {
    fn report(&self, request: &mut InboundCall) -> SlotId {
        let slot = request.on_started(EdgeId(0), self.class).expect("two calls fit");
        request.on_attempt(slot, &self.tries);
        match self.stop {
            Some(stop) => request.on_failed(slot, stop),
            None => request.on_ok(slot),
        }
        slot
    }
}

fn tries(attempts: u32, last: Option<CalleeClaim>, replied: bool) -> Tries {
    Tries { attempts, sent: attempts, last, replied, ..Tries::default() }
}

fn typical_calls() -> Vec<Call> {
    let failed = |stop, tries: Tries| Call {
        class: EdgeClass::Unknown,
        tries,
        stop: Some(stop),
        blamed: true,
        met: tries.attempts == 2,
        silence: false,
        only_silence: false,
        sent: true,
    };
    let silent = Some(CalleeClaim::Silent);
    let missing = Some(CalleeClaim::Missing);
    let claimed = Some(CalleeClaim::CLAIMED);
    let none = Stop::NotConfigured;
    let nothing = |stop| Call { sent: false, ..failed(stop, tries(0, None, false)) };
    vec![
        Call { stop: None, blamed: false, ..failed(none, tries(1, None, true)) },
        Call {
            class: EdgeClass::FailOpen,
            blamed: false,
            met: false,
            ..failed(Stop::Exhausted, tries(2, claimed, true))
        },
        Call { class: EdgeClass::FailClose, ..failed(none, tries(1, claimed, true)) },
        Call { silence: true, ..failed(none, tries(1, missing, true)) },
        Call { silence: true, only_silence: true, ..failed(none, tries(1, silent, false)) },
        failed(Stop::Exhausted, tries(2, claimed, true)),
        Call { silence: true, ..failed(Stop::Exhausted, tries(2, missing, true)) },
        Call {
            silence: true,
            only_silence: true,
            ..failed(Stop::Exhausted, tries(2, silent, false))
        },
        Call { met: true, ..nothing(Stop::Gated) },
        nothing(Stop::NoTime),
    ]
}

fn claim_table() -> String {
    let variables = [
        Variable::yes_no("shield"),
        Variable::yes_no("untied calls"),
        Variable::yes_no("tied call failed"),
        Variable::yes_no("one blamed"),
        Variable::yes_no("one met"),
        Variable::yes_no("silence"),
        Variable::yes_no("only silence"),
        Variable::yes_no("silent-claims"),
        Variable::yes_no("marked"),
    ];
    let calls = typical_calls();
    let pairs = calls.iter().flat_map(|first| calls.iter().map(move |second| [first, second]));
    let mut function = Function::new();
    for calls in pairs {
        let blamed = || calls.iter().filter(|call| call.blamed);
        let of_calls = [
            calls.iter().any(|call| call.stop.is_some()),
            blamed().count() > 0,
            blamed().any(|call| call.met),
            blamed().any(|call| call.silence),
            blamed().all(|call| call.only_silence || !call.sent) && blamed().any(|call| call.sent),
        ];
        for bits in 0..16 {
            let bit = |n: u32| bits >> n & 1 == 1;
            let at = Circumstances { shield: bit(0), untied_calls: bit(1), silent_claims: bit(2) };
            let marked = bit(3);
            let around = [[at.shield, at.untied_calls], [at.silent_claims, marked]];
            let facts = [around[0].as_slice(), &of_calls, &around[1]].concat();
            let choice: Vec<_> = facts.iter().map(|fact| usize::from(!fact)).collect();
            let mut request = InboundCall::new(Arm::Enforce, marked);
            for call in calls {
                call.report(&mut request);
            }
            let verdict = request.claim(at).expect("an enforcing service claims");
            let result = claim_and_reason(&verdict);
            let known = function.insert(choice, result.clone()).unwrap_or_else(|| result.clone());
            assert_eq!(known, result, "the columns do not decide the claim: {facts:?}");
        }
    }
    let order = [
        "unclaimed;kind=shield, operator",
        "claimed, context-lost",
        "claimed, own",
        "claimed, handoff",
        "claimed;kind=silent, handoff",
        "claimed;kind=silent, silent",
        "unclaimed, stop of the first met",
    ];
    table(&variables, &function, "claim, reason", &order)
}

fn token(claim: Claim) -> &'static str {
    match claim {
        Claim::Claimed => "claimed",
        Claim::ClaimedSilent => "claimed;kind=silent",
        Claim::Unclaimed => "unclaimed",
        Claim::UnclaimedShield => "unclaimed;kind=shield",
    }
}

fn claim_and_reason(verdict: &ClaimVerdict) -> String {
    let reason = match verdict.reason {
        ClaimReason::Stopped(_) | ClaimReason::InFlight => "stop of the first met",
        ClaimReason::Own
        | ClaimReason::Handoff
        | ClaimReason::Silent
        | ClaimReason::ContextLost
        | ClaimReason::Operator => verdict.reason.as_str(),
    };
    format!("{}, {reason}", token(verdict.claim))
}

fn dropped_table() -> String {
    let variables = [
        Variable::new("attempts", ["0", "1", "2 or more"]),
        Variable::yes_no("shadow stop"),
        Variable::yes_no("a final failure is blamed"),
        Variable::new("then", ["abandoned", "still open"]),
    ];
    let calls = typical_calls();
    let function = choices(&variables).into_iter().map(|choice| {
        let mut request = InboundCall::new(Arm::Observe, false);
        let dropped = request.on_started(EdgeId(1), EdgeClass::Unknown).expect("two calls fit");
        let mut tries = tries([0, 1, 2][choice[0]], Some(CalleeClaim::UNCLAIMED), true);
        tries.shadow = (choice[1] == 0).then_some(Stop::Suppressed);
        request.on_attempt(dropped, &tries);
        let other = if choice[2] == 0 { &calls[2] } else { &calls[0] };
        other.report(&mut request);
        if choice[3] == 0 {
            request.on_abandoned(dropped);
        }
        let verdict = request.claim(Circumstances::default()).expect("observing claims");
        let result = match (verdict.deciding == Some(dropped), verdict.reason) {
            (false, _) => "cancelled: no outcome",
            (true, ClaimReason::Stopped(_)) => "failed with the shadow stop",
            (true, _) => "in flight",
        };
        (choice, result.to_owned())
    });
    let order = ["failed with the shadow stop", "in flight", "cancelled: no outcome"];
    table(&variables, &function.collect(), "counts as", &order)
}

fn sent_table() -> String {
    let arms = [Arm::Off, Arm::Observe, Arm::Control, Arm::Enforce];
    let variables = [
        Variable::yes_no("shield"),
        Variable::new("mode", arms.map(Arm::as_str)),
        Variable::new("decision", ["claimed", "unclaimed"]),
        Variable::yes_no("probe made"),
    ];
    let calls = typical_calls();
    let function = choices(&variables).into_iter().map(|choice| {
        let mut request = InboundCall::new(arms[choice[1]], false);
        let call = &calls[[2, 5][choice[2]]];
        let slot = call.report(&mut request);
        request.on_attempt(slot, &Tries { probed: choice[3] == 0, ..call.tries });
        let at = Circumstances { shield: choice[0] == 0, ..Circumstances::default() };
        let result = match request.claim(at) {
            None => "nothing",
            Some(verdict) if verdict.vetoes => "the claim and vetoes",
            Some(_) => "the claim",
        };
        (choice, result.to_owned())
    });
    let order = ["nothing", "the claim", "the claim and vetoes"];
    table(&variables, &function.collect(), "sent", &order)
}
