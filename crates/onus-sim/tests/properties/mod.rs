//! Every property holds on every tree of four nodes, and none of its provisos is idle.

use std::sync::LazyLock;

use onus_sim::model::{Check, Finding, Findings, Property, Provisos, SLICES};

/// Every property as stated and without each of its provisos, on trees of up to four nodes.
pub(crate) static FOUR: LazyLock<Four> = LazyLock::new(Four::run);

pub(crate) struct Four {
    stated: Vec<Stated>,
    /// By slice, in the order of [`SLICES`].
    pub(crate) slices: Vec<Findings>,
    total: Findings,
}

/// A property as stated, or without one of its provisos.
struct Stated {
    property: Property,
    without: Option<&'static str>,
}

impl Four {
    fn run() -> Self {
        let mut stated = Vec::new();
        for property in Property::all() {
            stated.push(Stated { property, without: None });
            // Without a second run there is nothing to compare: not a proviso but what it is about.
            let needs = property.needs.without(Provisos::COUPLED);
            stated.extend(needs.each().map(|(proviso, words)| Stated {
                property: property.without(proviso),
                without: Some(words),
            }));
        }
        let properties = stated.iter().map(|stated| stated.property).collect();
        let check = Check { properties, ..Check::shipped(4, 2) };
        let slices: Vec<_> = SLICES.iter().map(|slice| check.run(slice, &|_| {})).collect();
        let mut total = Findings::default();
        for findings in &slices {
            total.add(findings.clone());
        }
        Self { stated, slices, total }
    }

    /// Every property as stated, and what it came to.
    pub(crate) fn as_stated(&self) -> impl Iterator<Item = (&Property, &Finding)> {
        let all = self.stated.iter().zip(&self.total.properties);
        let whole = all.filter(|(stated, _)| stated.without.is_none());
        whole.map(|(stated, found)| (&stated.property, found))
    }
}

#[test]
fn every_property_holds_on_every_tree_of_four_nodes() {
    for (property, found) in FOUR.as_stated() {
        assert_eq!(found.violations, 0, "{}: {:?}", property.name, found.smallest);
        assert!(found.traces > 1_000, "{} is tried: {} traces", property.name, found.traces);
    }
    assert!(FOUR.total.traces > 10_000_000, "{} traces", FOUR.total.traces);
}

#[test]
fn every_proviso_is_needed() {
    let all = FOUR.stated.iter().zip(&FOUR.total.properties);
    let needless = all.filter_map(|(stated, found)| {
        let without = stated.without.filter(|_| found.violations == 0)?;
        Some(format!("{} without \"{without}\"", stated.property.name))
    });
    assert_eq!(needless.collect::<Vec<_>>(), Vec::<String>::new());
}
