//! Graphs of published shapes, made by chance.

use super::{Graph, Link};
use crate::simulate::random::Random;
use crate::simulate::scenario::Shape;

/// What is published of a shape.
struct Published {
    /// The longest path.
    layers: u32,
    /// The share of services in the entry layer and among those that call nobody.
    entry: f64,
    leaf: f64,
    /// Median and deviation of the logarithm of a service's fan-out.
    fan_out: (f64, f64),
    /// Calls that one request makes; a service with more callees calls some of them.
    calls: f64,
}

/// Meta (ATC '23): fan-out 4 at the median and 23 at the 90th percentile, most traces 2 to 5
/// deep. Alibaba (SoCC '21): 13 % entries, 39 % leaves. Uber (CRISP, ATC '22): up to 25 deep.
const fn published(shape: Shape) -> Published {
    match shape {
        Shape::Meta => {
            Published { layers: 5, entry: 0.1, leaf: 0.5, fan_out: (4.0, 1.36), calls: 3.0 }
        }
        Shape::Alibaba => {
            Published { layers: 6, entry: 0.13, leaf: 0.39, fan_out: (3.0, 0.9), calls: 2.0 }
        }
        Shape::Uber => {
            Published { layers: 25, entry: 0.05, leaf: 0.3, fan_out: (3.0, 0.8), calls: 1.3 }
        }
    }
}

/// A graph of this shape and size; the same seed makes the same graph.
pub(crate) fn generated(shape: Shape, services: u32, seed: u64) -> Graph {
    let published = published(shape);
    let mut random = Random::new(seed, 0x6772_6170);
    let count = services as usize;
    let entries = ((count as f64 * published.entry) as usize).max(1);
    let between = (count - entries) as f64 / f64::from(published.layers - 1);
    // Entries first; the others fill the layers below in their order.
    let layer = |service: usize| match service.checked_sub(entries) {
        None => 0,
        Some(below) => 1 + (below as f64 / between.max(1.0)) as u32,
    };
    let first_of = |layer: u32| entries + (f64::from(layer - 1) * between.max(1.0)).ceil() as usize;
    let mut steps = Vec::with_capacity(count);
    for service in 0..count {
        let next = first_of(layer(service) + 1);
        let is_leaf = service >= entries && random.happens(published.leaf);
        if is_leaf || next >= count {
            steps.push(Vec::new());
            continue;
        }
        let (median, sigma) = published.fan_out;
        let fan_out = (median * (sigma * random.normal()).exp()).round().max(1.0) as u32;
        // Mostly the next layer, so that paths are as long as published.
        let width = (between.max(1.0) as usize).clamp(1, count - next) as u32;
        let mut callees: Vec<usize> =
            (0..fan_out).map(|_| next + random.below(width) as usize).collect();
        callees.sort_unstable();
        callees.dedup();
        let calls = (published.calls / callees.len() as f64).min(1.0);
        steps.push(callees.into_iter().map(|to| vec![Link { to, calls }]).collect());
    }
    // Each service has a caller in the layer above.
    let mut called = vec![false; count];
    for link in steps.iter().flatten().flatten() {
        let link: &Link = link;
        called[link.to] = true;
    }
    let forgotten = (entries..count).filter(|service| !called[*service]);
    for service in forgotten {
        let above = layer(service) - 1;
        let (from, to) =
            if above == 0 { (0, entries) } else { (first_of(above), first_of(above + 1)) };
        let caller = from + random.below((to.min(service) - from).max(1) as u32) as usize;
        steps[caller].push(vec![Link { to: service, calls: 0.1 }]);
    }
    Graph {
        names: (0..count).map(|service| format!("s{service}")).collect(),
        steps,
        entries: (0..entries).map(|service| (service, 1.0)).collect(),
        depth_max: published.layers as u16 + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_their_depth_and_reach_every_service() {
        for (shape, deepest) in
            [(Shape::Meta, 3..=5), (Shape::Alibaba, 4..=6), (Shape::Uber, 15..=25)]
        {
            let graph = generated(shape, 400, 1);
            let depths = graph.depths();
            assert!(depths.iter().all(Option::is_some), "{shape:?}: a service is not reached");
            let most = depths.iter().flatten().max().unwrap();
            assert!(deepest.contains(most), "{shape:?}: {most} deep");
            assert_eq!(graph, generated(shape, 400, 1));
            assert_ne!(graph, generated(shape, 400, 2));
        }
    }

    #[test]
    fn the_smallest_graphs_are_graphs() {
        for services in 2..40 {
            for shape in [Shape::Meta, Shape::Alibaba, Shape::Uber] {
                let graph = generated(shape, services, 7);
                assert!(graph.depths().iter().all(Option::is_some), "{shape:?} {services}");
            }
        }
    }
}
