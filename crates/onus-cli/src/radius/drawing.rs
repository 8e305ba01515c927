//! The graph as a picture, with the longest way of the largest storm.

use onus_graph::{Drawing, Look, ServiceId};

use super::{KnownEdges, Radius};

impl Radius {
    /// A picture of at most so many edges: those of the longest way first, then those that failed
    /// most.
    pub(crate) fn drawing(&self, edges: &KnownEdges, most: usize) -> Drawing {
        let way = self.without.below(self.worst().entry).path;
        let look = |caller: ServiceId, callee: ServiceId| {
            let key = (self.mesh.name(caller).to_owned(), self.mesh.name(callee).to_owned());
            let survival = edges[&key].survival;
            let p = survival.calls.p();
            Look {
                class: survival.class(self.assumed.reading),
                label: p
                    .map_or_else(String::new, |p| format!("P {p:.2} of {}", survival.calls.all)),
                weight: survival.calls.all,
            }
        };
        Drawing::of("Who calls whom, and who takes whom down", self.mesh.graph(), &way, most, look)
    }
}
