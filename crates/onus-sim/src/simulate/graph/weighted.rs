//! Graphs of traffic: how often each service calls another, counted over some time.

use onus_graph::{EdgeList, ListFormat, ListedEdge};

use super::{Graph, Link, Names};

/// Reads a list in CSV.
pub(crate) fn csv(text: &str, depth_max: u16) -> Result<Graph, String> {
    graph(&EdgeList::read(text, ListFormat::Csv), depth_max)
}

/// Reads Jaeger's `/api/dependencies`.
pub(crate) fn jaeger(text: &str, depth_max: u16) -> Result<Graph, String> {
    graph(&EdgeList::read(text, ListFormat::JaegerDependencies), depth_max)
}

/// A graph of what a file lists. What is no edge in it is refused: a scenario means what is written.
///
/// With numbers of calls, a request of a caller makes *calls ÷ calls into the caller* calls; without
/// them, one.
fn graph(list: &EdgeList, depth_max: u16) -> Result<Graph, String> {
    if let Some(refused) = list.refused.first() {
        return Err(refused.to_string());
    }
    if list.edges.is_empty() {
        return Err("there are no edges".to_owned());
    }
    let weighted = list.edges.iter().all(|edge| edge.calls.is_some());
    let mut names = Names::default();
    let mut edges = Vec::with_capacity(list.edges.len());
    for ListedEdge { caller, callee, calls } in &list.edges {
        edges.push((names.number(caller), names.number(callee), calls.unwrap_or(1.0)));
    }
    let count = names.names.len();
    // A service that calls itself passes on what it got; that says nothing about requests.
    let others = edges.iter().filter(|(caller, callee, _)| caller != callee);
    let mut into = vec![0.0; count];
    let mut most = vec![0.0_f64; count];
    for (caller, callee, weight) in others.clone() {
        into[*callee] += weight;
        most[*caller] = most[*caller].max(*weight);
    }
    let mut steps = vec![Vec::new(); count];
    for (caller, callee, weight) in others.filter(|(_, _, weight)| *weight > 0.0) {
        // Nobody counts the requests of an entry: as many as its commonest call.
        let requests = if into[*caller] > 0.0 { into[*caller] } else { most[*caller] };
        let calls = if weighted { weight / requests } else { 1.0 };
        steps[*caller].push(vec![Link { to: *callee, calls }]);
    }
    let entries = (0..count).filter(|service| into[*service] == 0.0 && most[*service] > 0.0);
    let entries = entries.map(|service| (service, if weighted { most[service] } else { 1.0 }));
    Ok(Graph { entries: entries.collect(), names: names.names, steps, depth_max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_per_request_are_weight_over_calls_into_the_caller() {
        let graph = csv("caller,callee,weight\na,b,40\na,c,100\nb,c,20\nc,c,9\n", 9).unwrap();
        assert_eq!(graph.names, ["a", "b", "c"]);
        assert_eq!(graph.entries, [(0, 100.0)]);
        let calls: Vec<_> = graph.links(0).map(|link| (link.to, link.calls)).collect();
        assert_eq!(calls, [(1, 0.4), (2, 1.0)]);
        assert_eq!(graph.links(1).map(|link| link.calls).collect::<Vec<_>>(), [0.5]);
        assert_eq!(graph.links(2).count(), 0);
    }

    #[test]
    fn without_weights_each_callee_is_called_once() {
        let graph = csv("caller,callee\na,b\nc,b\n", 9).unwrap();
        assert_eq!(graph.entries, [(0, 1.0), (2, 1.0)]);
        assert!((0..3).all(|service| graph.links(service).all(|link| link.calls == 1.0)));
    }

    #[test]
    fn both_forms_of_jaeger_are_read() {
        let list = r#"[{"parent": "a", "child": "b", "callCount": 3}]"#;
        let wrapped = format!("{{\"data\": {list}, \"total\": 0}}");
        assert_eq!(jaeger(list, 9).unwrap(), jaeger(&wrapped, 9).unwrap());
    }

    #[test]
    fn what_is_no_graph_is_refused_with_its_line() {
        for (text, complaint) in [
            ("caller,callee\na\n", "line 2: `a` is no edge"),
            ("caller,callee,weight\na,b,1\na,c,-1\n", "line 3: `-1` is no number of calls"),
            ("caller,callee\n", "there are no edges"),
        ] {
            let found = csv(text, 9).unwrap_err();
            assert!(found.starts_with(complaint), "{found}");
        }
        assert!(jaeger("[{}]", 9).unwrap_err().starts_with("edge 1: needs the names"));
    }
}
