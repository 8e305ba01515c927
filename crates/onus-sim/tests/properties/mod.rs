//! Every property holds on every tree of four nodes, and none of its provisos is idle.

use std::sync::LazyLock;

use onus_sim::model::{Check, Findings, Property, Provisos, SLICES};

/// A property as stated, or without one of its provisos.
struct Stated {
    name: String,
    property: Property,
    without: Option<&'static str>,
}

/// All of them, and what every slice came to.
static FOUND: LazyLock<(Vec<Stated>, Findings)> = LazyLock::new(|| {
    let mut stated = Vec::new();
    for property in Property::all() {
        stated.push(Stated { name: property.name.to_owned(), property, without: None });
        // Without a second run there is nothing to compare: not a proviso but what it is about.
        let needs = property.needs.without(Provisos::COUPLED);
        stated.extend(needs.each().map(|(proviso, words)| Stated {
            name: format!("{} without \"{words}\"", property.name),
            property: property.without(proviso),
            without: Some(words),
        }));
    }
    let properties = stated.iter().map(|stated| stated.property).collect();
    let check = Check { properties, ..Check::shipped(4, 2) };
    let mut found = Findings::default();
    for slice in &SLICES {
        found.add(check.run(slice, &|_| {}));
    }
    (stated, found)
});

#[test]
fn every_property_holds_on_every_tree_of_four_nodes() {
    let (stated, found) = &*FOUND;
    for (stated, found) in stated.iter().zip(&found.properties) {
        if stated.without.is_none() {
            assert_eq!(found.violations, 0, "{}: {:?}", stated.name, found.smallest);
            assert!(found.traces > 1_000, "{} is tried: {} traces", stated.name, found.traces);
        }
    }
    assert!(found.traces > 5_000_000, "{} traces", found.traces);
}

#[test]
fn every_proviso_is_needed() {
    let (stated, found) = &*FOUND;
    let needless: Vec<_> = stated
        .iter()
        .zip(&found.properties)
        .filter(|(stated, found)| stated.without.is_some() && found.violations == 0)
        .map(|(stated, _)| stated.name.as_str())
        .collect();
    assert_eq!(needless, Vec::<&str>::new());
}
