//! What a storm comes to at each entry, without ownership and with it.

use crate::graph::{Graph, ServiceId};
use crate::storm::{StormSize, Storms};

/// The storms below one entry.
#[derive(Clone, Debug, PartialEq)]
pub struct Outlook {
    /// Where requests come in.
    pub entry: ServiceId,
    /// The storm while every service retries blindly.
    pub without: StormSize,
    /// The storm with ownership as far as each service's coverage says.
    pub with: StormSize,
}

impl Graph {
    /// The storms below all [entries](Self::entries), the largest one without ownership first:
    /// `without` are the storms of [`Ownership::Nowhere`](crate::Ownership::Nowhere), `with` those of
    /// [`Ownership::AsIs`](crate::Ownership::AsIs).
    #[must_use]
    pub fn outlooks(&self, without: &Storms, with: &Storms) -> Vec<Outlook> {
        let outlook = |entry| Outlook {
            entry,
            without: without.size_below(entry),
            with: with.size_below(entry),
        };
        let mut outlooks: Vec<_> = self.entries().into_iter().map(outlook).collect();
        outlooks.sort_by(|one, other| {
            let by_amplification =
                other.without.amplification.total_cmp(&one.without.amplification);
            by_amplification.then(other.without.radius.cmp(&one.without.radius))
        });
        outlooks
    }
}

impl Outlook {
    /// Means of the radii without and with ownership; `None` of no entries.
    #[must_use]
    pub fn mean_radii(outlooks: &[Self]) -> Option<(f64, f64)> {
        let mean = |of: fn(&Self) -> u32| {
            outlooks.iter().map(|outlook| f64::from(of(outlook))).sum::<f64>()
                / outlooks.len() as f64
        };
        (!outlooks.is_empty()).then(|| (mean(|it| it.without.radius), mean(|it| it.with.radius)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Edge, Service};
    use crate::reading::Ownership;

    #[test]
    fn the_worst_entry_comes_first() {
        // A → C; B → C → D: two attempts at each hop.
        let mut graph = Graph::new();
        let [a, b, c, d] = ["A", "B", "C", "D"].map(|name| graph.add_service(Service::new(name)));
        for (caller, callee, attempts) in [(a, c, 1), (b, c, 2), (c, d, 2)] {
            graph.add_edge(caller, callee, Edge::retrying(attempts));
        }
        let outlooks =
            graph.outlooks(&graph.storms(Ownership::Nowhere), &graph.storms(Ownership::AsIs));
        let radii: Vec<_> =
            outlooks.iter().map(|it| (it.entry, it.without.radius, it.with.radius)).collect();
        assert_eq!(radii, [(b, 2, 1), (a, 1, 1)]);
        assert_eq!(Outlook::mean_radii(&outlooks), Some((1.5, 1.0)));
        assert_eq!(Outlook::mean_radii(&[]), None);
    }
}
