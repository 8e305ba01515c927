//! From the topology, as it is typed, to a graph in which every service can be reached.

use serde_saphyr::{Location, Spanned};

use super::file::ScenarioFile;
use super::sweep::Parameter;
use super::topology::{CallsFile, GraphFile, TopologyFile};
use crate::file_error::{Fault, at};
use crate::simulate::graph::{self, Graph};

type Read<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The graph of a scenario.
pub(super) fn graph(
    file: &ScenarioFile,
    sweep: Option<(Parameter, f64)>,
    read: Read<'_>,
) -> Result<Graph, Fault> {
    let place = file.topology.referenced;
    match &file.topology.value {
        TopologyFile::Chain(names) => chain(names, place),
        TopologyFile::Hops(hops) => {
            let swept = sweep.filter(|(parameter, _)| *parameter == Parameter::Hops);
            let hops = swept.map_or(hops.value, |(_, value)| value as u32);
            Ok(chain_of(hops))
        }
        TopologyFile::Calls(calls) => lists(calls, place),
        TopologyFile::Csv(file) => of_file(file, read, graph::csv),
        TopologyFile::Jaeger(file) => of_file(file, read, graph::jaeger),
        TopologyFile::Isotope(file) => of_file(file, read, graph::isotope),
        TopologyFile::Generated(file) => {
            if !(2..=100_000).contains(&file.services.value) {
                let message = format!("{} services; allowed is 2 to 100000", file.services.value);
                return Err(at(&file.services, message));
            }
            Ok(graph::generated(file.shape, file.services.value, file.seed))
        }
    }
}

fn chain_of(hops: u32) -> Graph {
    let names: Vec<_> = (0..hops.clamp(1, 100)).map(|service| format!("n{service}")).collect();
    graph::chain(names.iter().map(String::as_str).chain(["last"]))
}

fn chain(names: &[Spanned<String>], place: Location) -> Result<Graph, Fault> {
    if names.is_empty() {
        return Err(Fault { at: place, message: "the chain has no service".to_owned() });
    }
    for (index, name) in names.iter().enumerate() {
        if names[..index].iter().any(|before| before.value == name.value) {
            return Err(at(name, format!("`{}` is in the chain twice", name.value)));
        }
    }
    Ok(graph::chain(names.iter().map(|name| name.value.as_str())))
}

fn lists(file: &CallsFile, place: Location) -> Result<Graph, Fault> {
    let lists = file.services.iter().map(|(caller, callees)| {
        (caller.as_str(), callees.iter().map(|callee| callee.value.as_str()).collect())
    });
    let mut graph = graph::lists(lists, file.depth);
    graph.steps.resize(graph.names.len(), Vec::new());
    for callees in file.services.values() {
        for (index, callee) in callees.iter().enumerate() {
            if callees[..index].iter().any(|before| before.value == callee.value) {
                let hint = "give the edge `calls` instead";
                return Err(at(callee, format!("`{}` is called twice; {hint}", callee.value)));
            }
        }
    }
    enter(&mut graph, &file.entries, place)?;
    let depths = graph.depths();
    let unreached = |name: &String| graph.find(name).is_some_and(|at| depths[at].is_none());
    if let Some((name, callees)) = file.services.iter().find(|(name, _)| unreached(name)) {
        let place = callees.first().map_or(place, |callee| callee.referenced);
        let message = format!(
            "no request reaches `{name}`; allowed are services that an entry calls, if only in the end"
        );
        return Err(Fault { at: place, message });
    }
    Ok(graph)
}

fn of_file(
    file: &GraphFile,
    read: Read<'_>,
    parse: fn(&str, u16) -> Result<Graph, String>,
) -> Result<Graph, Fault> {
    let path = &file.path.value;
    let complain = |what: &str| at(&file.path, format!("{path}: {what}"));
    let text = read(path).map_err(|error| complain(&error))?;
    let mut graph = parse(&text, file.depth).map_err(|error| complain(&error))?;
    enter(&mut graph, &file.entries, file.path.referenced)?;
    Ok(graph)
}

/// Sets the entries: those that are named, else those that the graph has, else those that nobody
/// calls.
fn enter(graph: &mut Graph, named: &[Spanned<String>], place: Location) -> Result<(), Fault> {
    if !named.is_empty() {
        let find = |name: &Spanned<String>| {
            let known = graph.find(&name.value);
            let known = known.ok_or_else(|| at(name, format!("`{}` is no service", name.value)));
            Ok((known?, 1.0))
        };
        graph.entries = named.iter().map(find).collect::<Result<_, Fault>>()?;
    } else if graph.entries.is_empty() {
        graph.entries = graph.roots().into_iter().map(|service| (service, 1.0)).collect();
    }
    if graph.entries.is_empty() {
        let message = "every service is called by another, so no request comes in: a cycle needs \
                       `entries`";
        return Err(Fault { at: place, message: message.to_owned() });
    }
    Ok(())
}
