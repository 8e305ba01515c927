//! Counters instead of traces: AWS's PetShop, in windows of five minutes. A window in which a callee
//! failed a request is a failure of the edge; its caller failed too if it failed any. Windows in
//! which one of them was not counted say nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use onus_graph::{Failures, Mesh, Ownership, Reading, Survival};
use onus_learn::MeasuredClass;

use super::{data, rows, text};

type Edges = BTreeMap<(String, String), Failures>;

/// Who calls whom, as a matrix.
fn edges(folder: &Path) -> Edges {
    let graph = text(&folder.join("graph.csv"));
    let rows = rows(&graph);
    let mut edges = Edges::new();
    for row in &rows[1..] {
        for (callee, cell) in rows[0].iter().zip(row).skip(1) {
            if cell.parse() != Ok(0.0) {
                edges.insert((row[0].to_owned(), (*callee).to_owned()), Failures::default());
            }
        }
    }
    edges
}

/// Adds the windows of one injected fault.
fn count(edges: &mut Edges, metrics: &str) {
    let rows = rows(metrics);
    let [services, metrics] = [&rows[0], &rows[1]];
    for window in rows.iter().filter(|row| row[0].parse::<f64>().is_ok()) {
        let of = |metric: &str| -> BTreeMap<&str, f64> {
            let columns = (1..services.len()).filter(|&at| metrics[at] == metric);
            columns.filter_map(|at| Some((services[at], window[at].parse().ok()?))).collect()
        };
        let (requests, available) = (of("requests"), of("availability"));
        // Unrounded as in the script, in which one request of some windows comes to less than one.
        let failed = |service: &str| {
            let (requests, available) = requests.get(service).zip(available.get(service))?;
            Some(requests * (100.0 - available) / 100.0 >= 1.0)
        };
        for ((caller, callee), failures) in edges.iter_mut() {
            let (Some(caller), Some(callee)) = (failed(caller), failed(callee)) else { continue };
            failures.all += u64::from(callee);
            failures.both += u64::from(callee && caller);
        }
    }
}

fn counted(folder: &Path) -> Edges {
    let mut edges = edges(folder);
    for set in ["train", "test"] {
        for issue in fs::read_dir(folder.join(set)).expect("the folder can be read") {
            let issue = issue.expect("the folder can be read").path();
            count(&mut edges, &text(&issue.join("metrics.csv")));
        }
    }
    edges.retain(|_, failures| failures.all > 0);
    edges
}

#[test]
fn counters_have_the_classes_that_an_independent_script_found() {
    let Some(folder) = data("metrics/petshop") else { return };
    let expected = text(&folder.join("expected-edges.csv"));
    let expected: Vec<Vec<String>> = rows(&expected)[1..]
        .iter()
        .map(|row| row.iter().map(ToString::to_string).collect())
        .collect();
    let edges = counted(&folder.join("high_traffic"));
    let found: Vec<Vec<String>> = edges
        .iter()
        .map(|((caller, callee), failures)| {
            let Failures { all, both } = failures;
            let p = failures.p().map_or_else(String::new, |p| format!("{p:.4}"));
            let class = failures.class().to_string();
            vec![caller.clone(), callee.clone(), all.to_string(), both.to_string(), p, class]
        })
        .collect();
    assert_eq!(found, expected);

    // Windows say nothing of single requests: no class is proven, and no decision follows.
    let mut mesh = Mesh::new();
    for ((caller, callee), &windows) in &edges {
        let proven = MeasuredClass::Unknown;
        let survival = Survival { calls: windows, requests: windows, proven };
        mesh.add_edge(caller, callee, survival.edge(2, Reading::Calls));
    }
    let graph = mesh.graph();
    let outlooks =
        graph.outlooks(&graph.storms(Ownership::Nowhere), &graph.storms(Ownership::AsIs));
    let site = mesh.find("PetSite").expect("it is in the graph");
    let site = outlooks.iter().find(|it| it.entry == site).expect("nobody calls it");
    assert!(site.without.radius > 1 && site.with.radius == 1, "{site:?}");
}
