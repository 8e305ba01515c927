//! What must hold of any dump of traces, and of any graph.

use onus_graph::{Drawing, Edge, EdgeList, ListFormat, Look, Mesh, Ownership};
use onus_learn::MeasuredClass;
use onus_traces::{Columns, Format, Import, Limits, Reading, Service};

/// Reads `data` as a dump, alone and twice: nothing panics, and what is repeated counts once.
pub fn dump(data: &[u8], format: Format) {
    let report = |times: usize| {
        let mut import = Import::new(Limits { spans: 10_000, services: 100 });
        import.columns(columns());
        for _ in 0..times {
            import.read("dump", data, format);
        }
        import.report(Reading::default())
    };
    let once = report(1);
    for edge in &once.edges {
        assert!(edge.both <= edge.failures && edge.failures <= edge.calls);
        assert!(edge.requests_both <= edge.requests_with_failure);
        assert!(edge.requests_with_failure <= edge.requests && edge.requests <= edge.calls);
        assert!(edge.interval().is_none_or(|(low, high)| 0.0 <= low && low <= high && high <= 1.0));
    }
    let claims: u64 = once.claims.iter().map(|claims| claims.failed).sum();
    assert_eq!(claims, once.summary.failed_requests);
    for warning in &once.warnings {
        let _ = warning.to_string();
        assert!(warning.at.is_none_or(|at| at <= limit(data)), "{warning}");
    }
    // Traces numbered by hand are others in each file, and limits meet twice as many spans.
    let full = once.skipped.spans > 0 || once.skipped.calls > 0;
    let twice = report(2);
    if !full && twice.summary.traces == once.summary.traces {
        assert_eq!(once.edges, twice.edges);
    }
}

/// Places are in what was decompressed, which may be a thousand times as long.
fn limit(data: &[u8]) -> u64 {
    match data {
        [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => u64::MAX,
        _ => data.len() as u64,
    }
}

fn columns() -> Columns {
    let column = |name: &str| Some(name.to_owned());
    Columns {
        trace: "t".to_owned(),
        span: "s".to_owned(),
        parent: "p".to_owned(),
        service: Service::Pod("pod".to_owned()),
        kind: column("k"),
        error: column("e"),
        peer: column("c"),
        start: column("b"),
    }
}

/// Reads `data` as a list of edges, and draws its graph: nothing panics, and ownership leaves at most
/// one hop.
pub fn list(data: &[u8], format: ListFormat) {
    let text = String::from_utf8_lossy(data);
    let list = EdgeList::read(&text, format);
    assert!(list.refused.len() as u64 <= list.refused_in_all);
    let mut mesh = Mesh::new();
    for edge in &list.edges {
        assert!(edge.calls.is_none_or(|calls| calls >= 0.0 && calls.is_finite()));
        mesh.add_edge(&edge.caller, &edge.callee, Edge::retrying(2));
    }
    let graph = mesh.graph();
    let owned = graph.storms(Ownership::AsIs);
    assert!(graph.services().all(|(service, _)| owned.below(service).radius <= 1));
    let without = graph.storms(Ownership::Nowhere);
    let outlooks = graph.outlooks(&without, &owned);
    assert_eq!(outlooks.is_empty(), list.edges.is_empty());
    let Some(worst) = outlooks.first() else { return };
    let look = Look { class: MeasuredClass::NoData, label: String::new(), weight: 0 };
    let drawing = Drawing::of("graph", graph, &without.below(worst.entry).path, 100, |_, _| look.clone());
    let _ = (drawing.dot(), drawing.mermaid(), drawing.svg());
}
