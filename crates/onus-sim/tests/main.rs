//! What the shipped rules keep on every small tree, and that the checker would notice if they did
//! not.

mod simulate;

use onus_sim::model::{Check, Findings, Property, Provisos, Replay, Rules, SLICES, Slice};

/// These slices, on trees of up to so many nodes.
fn run(check: &Check, slices: &[&str]) -> Findings {
    let mut all = Findings::default();
    for name in slices {
        let slice = Slice::named(name).expect("a slice of this name");
        all.add(check.run(slice, &|_| {}));
    }
    all
}

#[test]
fn every_property_holds_on_every_tree_of_four_nodes() {
    let check = Check::shipped(4, 2);
    let found = run(&check, &SLICES.map(|slice| slice.name));
    for (property, found) in check.properties.iter().zip(&found.properties) {
        assert_eq!(found.violations, 0, "{}: {:?}", property.name, found.smallest);
        assert!(found.traces > 1_000, "{} is tried: {} traces", property.name, found.traces);
    }
    assert!(found.traces > 10_000_000, "{} traces", found.traces);
}

#[test]
fn rules_that_were_rejected_break_what_they_were_rejected_for() {
    for (rules, slice, property) in [
        (Rules::NoOwnership, "policies", "one-culprit"),
        (Rules::PlainMatrix, "policies", "at-least-once-weak"),
        (Rules::AttemptsAreMax, "policies", "at-least-once-weak"),
        (Rules::SuppressedNotMet, "policies", "one-culprit"),
        (Rules::ExcludedMet, "policies", "at-least-once-weak"),
        (Rules::UnknownNotBlamed, "class-knowledge", "one-culprit"),
        (Rules::NoMark, "silence", "mark"),
        (Rules::MarkWashedOff, "silence", "mark"),
        (Rules::FailedAttemptBlamed, "policies", "at-least-once-weak"),
        (Rules::DeniedNotMet, "policies", "storm-radius"),
        (Rules::AllMet, "diamonds", "several-paths"),
        (Rules::LastDecides, "diamonds", "several-paths"),
        (Rules::DroppedIsNothing, "dropped-calls", "mark"),
        (Rules::LayersNotCounted, "layers-below", "one-culprit"),
    ] {
        let check = Check { rules, ..Check::shipped(4, 2) };
        let found = run(&check, &[slice]);
        let at = check.properties.iter().position(|known| known.name == property);
        let found = &found.properties[at.expect("a property of this name")];
        let smallest = found.smallest.as_ref();
        let smallest = smallest.unwrap_or_else(|| panic!("{} keeps {property}", rules.as_str()));
        let replay = Replay::of(&smallest.id()).expect("an id that was printed");
        assert!(replay.broken().contains(&property), "{}", smallest.id());
        assert!(replay.mermaid().contains("sequenceDiagram"), "{}", replay.mermaid());
    }
}

#[test]
fn every_proviso_is_needed() {
    let mut names = Vec::new();
    let mut properties = Vec::new();
    for property in Property::all() {
        // Without a second run there is nothing to compare: not a proviso but what it is about.
        let needs = property.needs.without(Provisos::COUPLED);
        for (proviso, words) in needs.each() {
            names.push(format!("{} without \"{words}\"", property.name));
            properties.push(property.without(proviso));
        }
    }
    let found = run(&Check { properties, ..Check::shipped(4, 2) }, &SLICES.map(|slice| slice.name));
    let needless: Vec<_> = names
        .iter()
        .zip(&found.properties)
        .filter(|(_, found)| found.violations == 0)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(needless, Vec::<&str>::new());
}
