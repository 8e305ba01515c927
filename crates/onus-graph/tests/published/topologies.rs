//! Service graphs of Jaeger, Isotope and others.

use onus_graph::{Edge, EdgeList, ListFormat, Mesh, Ownership};

use super::{data, text};

fn read(name: &str) -> Option<EdgeList> {
    let text = text(&data(name)?);
    let list = EdgeList::read(&text, ListFormat::of(&text));
    assert_eq!(list.refused, [], "{name}");
    Some(list)
}

/// Every call is tried twice; a service that calls itself passes on what it got.
fn mesh(list: &EdgeList) -> Mesh {
    let mut mesh = Mesh::new();
    for edge in list.edges.iter().filter(|edge| edge.caller != edge.callee) {
        mesh.add_edge(&edge.caller, &edge.callee, Edge::retrying(2));
    }
    mesh
}

#[test]
fn originals_and_edge_lists_are_the_same_graphs() {
    for (original, edges) in [
        ("jaeger-dependencies-large.json", "jaeger-dependencies-large"),
        ("jaeger-dependencies-small.json", "jaeger-dependencies-small"),
        ("isotope-canonical.yaml", "isotope-canonical"),
        ("isotope-chain-3-services.yaml", "isotope-chain-3-services"),
        ("isotope-tree-111-services.yaml", "isotope-tree-111-services"),
    ] {
        let Some(original) = read(&format!("topologies/raw/{original}")) else { return };
        let Some(listed) = read(&format!("topologies/{edges}.edges.csv")) else { return };
        let sorted = |list: EdgeList| {
            let pairs = list.edges.into_iter().map(|edge| (edge.caller, edge.callee));
            let mut pairs: Vec<_> = pairs.collect();
            pairs.sort();
            pairs.dedup();
            pairs
        };
        assert_eq!(sorted(original), sorted(listed), "{edges}");
    }
}

#[test]
fn ownership_leaves_one_hop_of_published_graphs() {
    for (name, services, entries, radius) in [
        ("online-boutique", 13, 1, Some(4)),
        ("dsb-socialnetwork", 23, 1, Some(5)),
        ("otel-demo", 28, 4, Some(5)),
        ("filibuster-netflix", 10, 1, Some(3)),
        // Calls in circles: without ownership there is no bound.
        ("jaeger-dependencies-large", 1_238, 385, None),
    ] {
        let Some(list) = read(&format!("topologies/{name}.edges.csv")) else { return };
        let mesh = mesh(&list);
        assert_eq!(mesh.graph().services().count(), services, "{name}");
        let (without, owned) =
            (mesh.graph().storms(Ownership::Nowhere), mesh.graph().storms(Ownership::AsIs));
        let outlooks = mesh.graph().outlooks(&without, &owned);
        assert_eq!(outlooks.len(), entries, "{name}");
        let worst = without.below(outlooks[0].entry);
        match radius {
            Some(radius) => {
                assert_eq!((worst.radius, worst.unbounded_through.len()), (radius, 0), "{name}");
                assert_eq!(worst.amplification, f64::from(1 << radius), "{name}");
            }
            None => assert!(!worst.unbounded_through.is_empty(), "{name}"),
        }
        for (service, _) in mesh.graph().services() {
            let storm = owned.below(service);
            assert!(storm.radius <= 1 && storm.unbounded_through.is_empty(), "{name}: {storm:?}");
        }
    }
}
