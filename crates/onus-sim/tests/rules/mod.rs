//! Rules that were rejected, and the traces that say why.

use onus_sim::model::{Check, Replay, Rules, Slice};

/// A rejected rule, a slice in which it breaks a property, and the requests in the smallest trace.
pub(crate) const REJECTED: [(Rules, &str, &str, &str); 14] = [
    (Rules::NoOwnership, "policies-class", "one-culprit", "A 1, B 2, C 3"),
    (Rules::PlainMatrix, "policies-class", "at-least-once-weak", "A 1, B 1, C 1"),
    (Rules::AttemptsAreMax, "policies-class", "at-least-once-weak", "A 1, B 1, C 1"),
    (Rules::SuppressedNotMet, "policies-class", "one-culprit", "A 1, B 2, C 2, D 3"),
    (Rules::DeniedNotMet, "policies-class", "storm-radius", "A 1, B 2, C 2"),
    (Rules::ExcludedMet, "policies-class", "at-least-once-weak", "A 1, B 1, C 1"),
    (Rules::AllMet, "diamonds", "several-paths", "A 1, B 2, C 2, D 2, E 6"),
    (Rules::LastDecides, "diamonds", "several-paths", "A 1, B 2, C 2, D 2, E 6"),
    (Rules::MarkWashedOff, "silence", "mark", "A 1, B 2, C 4, D 4"),
    (Rules::NoMark, "silence", "mark", "A 1, B 2, C 4"),
    (Rules::DroppedIsNothing, "dropped-calls", "mark", "A 1, B 2, C 4, D 4"),
    (Rules::UnknownNotBlamed, "class-knowledge", "one-culprit", "A 1, B 2, C 3"),
    (Rules::FailedAttemptBlamed, "policies-class", "at-least-once-weak", "A 1, B 1, C 2"),
    (Rules::LayersNotCounted, "layers-below", "one-culprit", "A 1, B 2, C 3"),
];

#[test]
fn rules_that_were_rejected_break_what_they_were_rejected_for() {
    assert_eq!(REJECTED.len() + 1, Rules::ALL.len(), "every rule but the shipped ones");
    for (rules, slice, property, requests) in REJECTED {
        let check = Check { rules, ..Check::shipped(4, 2) };
        let slice = Slice::named(slice).expect("a slice of this name");
        let found = check.run(slice, &|_| {});
        let at = check.properties.iter().position(|known| known.name == property);
        let found = &found.properties[at.expect("a property of this name")];
        let smallest = found.smallest.as_ref();
        let smallest = smallest.unwrap_or_else(|| panic!("{} keeps {property}", rules.as_str()));
        let replay = Replay::of(&smallest.id()).expect("an id that was printed");
        assert!(replay.broken().contains(&property), "{}", smallest.id());
        let text = replay.text();
        let last = text.lines().last().expect("a line of requests");
        assert_eq!(last, format!("requests: {requests}"), "{}\n{text}", smallest.id());
    }
}
