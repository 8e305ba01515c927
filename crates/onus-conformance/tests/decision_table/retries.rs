//! The tables of the caller: may it retry, and were the criteria met?

use std::fmt::Write;

use onus_core::{
    CalleeClaim, Ending, Facts, Ownership, PushbackFact, Stop, criteria_met, decide,
    decide_unsuppressed,
};

use super::fold::{Function, Variable, choices, table};

const PUSHBACKS: [(PushbackFact, &str); 3] = [
    (PushbackFact::None, "none"),
    (PushbackFact::Refused, "refused"),
    (PushbackFact::TooLong, "too long"),
];

pub(crate) fn tables() -> String {
    let mut text = String::from(
        "## Retry decision\n\nAfter a failed attempt. *Refused* is a negative or unparsable \
         pushback, *too long* one beyond the time left. *Covered*: a policy of at least two \
         attempts covers edge, method and error.\n\n",
    );
    text += &retry_table(CalleeClaim::ALL.as_slice(), decide_any);
    text += "\n### Probes\n\nA suppressed call is evaluated once more; a probe may be drawn where \
             the table says retry.\n\n";
    text += &retry_table(&[CalleeClaim::UNCLAIMED], probe_any);
    text += "\n## Retry criteria\n\nFor the final failure of a logical call.\n\n";
    text += &criteria_table();
    text
}

type Decide = fn(&Facts, Ownership, bool) -> Result<(), Stop>;

fn decide_any(facts: &Facts, ownership: Ownership, token: bool) -> Result<(), Stop> {
    decide(facts, ownership, || token)
}

fn probe_any(facts: &Facts, ownership: Ownership, token: bool) -> Result<(), Stop> {
    decide_unsuppressed(facts, ownership, || token)
}

fn retry_table(claims: &[CalleeClaim], decide: Decide) -> String {
    let variables = [
        Variable::new("ownership", ["enforced", "observed"]),
        Variable::new("claim", claims.iter().map(|claim| claim.as_str())),
        Variable::new("pushback", PUSHBACKS.map(|(_, name)| name)),
        Variable::yes_no("trusted"),
        Variable::yes_no("covered"),
        Variable::yes_no("marked"),
        Variable::yes_no("replayable"),
        Variable::yes_no("attempts left"),
        Variable::yes_no("time left"),
        Variable::yes_no("gate open"),
        Variable::yes_no("token"),
    ];
    let function: Function = choices(&variables)
        .into_iter()
        .map(|choice| {
            let ownership = [Ownership::Enforced, Ownership::Observed][choice[0]];
            let yes = |column: usize| choice[column] == 0;
            let facts = Facts {
                claim: claims[choice[1]],
                pushback: PUSHBACKS[choice[2]].0,
                trusted: yes(3),
                covered: yes(4),
                marked: yes(5),
                replayable: yes(6),
                attempts_left: yes(7),
                time_left: yes(8),
                gate_open: yes(9),
            };
            let result = match decide(&facts, ownership, yes(10)) {
                Ok(()) => "retry",
                Err(stop) => stop.as_str(),
            };
            (choice, result.to_owned())
        })
        .collect();
    let stops = Stop::ALL.into_iter().map(Stop::as_str);
    let order: Vec<_> = stops.chain(["retry"]).collect();
    table(&variables, &function, "decision", &order)
}

fn criteria_table() -> String {
    let endings: Vec<_> =
        Stop::ALL.into_iter().map(Ending::Stopped).chain([Ending::InFlight]).collect();
    let variables = [
        Variable::new("attempts", ["0", "1", "2", "3 or more"]),
        Variable::new("ending", endings.iter().map(|ending| ending.reason().as_str())),
    ];
    let attempts = [vec![0], vec![1], vec![2], vec![3, 4, 100, u32::MAX]];
    let mut function = Function::new();
    for choice in choices(&variables) {
        let ending = endings[choice[1]];
        let mut met: Vec<_> =
            attempts[choice[0]].iter().map(|attempts| criteria_met(*attempts, ending)).collect();
        met.dedup();
        let mut result = String::new();
        for met in met {
            write!(result, "{}", if met { "met" } else { "not met" }).expect("a string grows");
        }
        function.insert(choice, result);
    }
    table(&variables, &function, "criteria", &["met", "not met"])
}
