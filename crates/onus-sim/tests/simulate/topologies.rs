//! Graphs that nobody here wrote: service graphs of public projects, from a folder beside the
//! project (`ONUS_DATA` names another), in every form that a scenario can name. And graphs of
//! published shapes, made by chance.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use onus_sim::simulate::{Changes, Experiment, RunOptions, Scenario, json, run};

use super::{NEVER, play};

/// The folder of topologies; where it is not there `test` is skipped, unless it must not be.
fn shared(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("ONUS_DATA").map_or(beside, PathBuf::from).join("topologies");
    if folder.is_dir() {
        return Some(folder);
    }
    let required = std::env::var("ONUS_PEERS").is_ok_and(|peers| peers == "required");
    assert!(!required, "{test} needs {}", folder.display());
    // Not by `println!`, which is shown of failed tests only.
    let _ = writeln!(io::stderr(), "skipped: {test} needs {}", folder.display());
    None
}

/// Plays requests over a graph in a file, of which a service fails some.
fn play_file(folder: &Path, form: &str, file: &str, requests: u32) -> Experiment {
    let text = format!(
        "arrivals: {{requests: {requests}}}\nbackoff: none\n\
         topology: {{{form}: {{path: {file}}}}}\n\
         policies: [none, ownership]\n"
    );
    let read = |file: &str| fs::read_to_string(folder.join(file)).map_err(|e| e.to_string());
    let scenario = Scenario::load("shared", &text, &Changes::default(), &read);
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    run(&scenario, &RunOptions { threads: 2, stop: &NEVER, progress: &|| () })
}

/// The requests that each service handles, by name.
fn handled(experiment: &Experiment) -> Vec<(String, f64)> {
    let services = experiment.outcomes[0].services.iter();
    let mut handled: Vec<_> =
        services.map(|service| (service.name.clone(), service.handled.mean)).collect();
    handled.sort_by(|one, other| one.0.cmp(&other.0));
    handled
}

#[test]
fn every_edge_list_is_a_graph_of_all_its_services() {
    let Some(folder) = shared("every_edge_list_is_a_graph_of_all_its_services") else { return };
    let stats = fs::read_to_string(folder.join("stats.csv")).expect("statistics of the graphs");
    let mut graphs = 0;
    for line in stats.lines().skip(1) {
        let fields: Vec<_> = line.split(',').collect();
        let (name, nodes) = (fields[0], fields[1].parse::<usize>().expect("a count"));
        let file = format!("{name}.edges.csv");
        let experiment = play_file(&folder, "csv", &file, 300);
        for outcome in &experiment.outcomes {
            assert_eq!(outcome.services.len(), nodes, "{name}");
            assert_eq!(outcome.availability.mean, 1.0, "{name}");
            let handled: f64 = outcome.services.iter().map(|s| s.handled.mean).sum();
            assert_eq!(handled, outcome.ended.mean, "{name}: every request ends");
            assert!(handled > 300.0, "{name}: calls are made");
        }
        graphs += 1;
    }
    assert_eq!(graphs, 12);
}

#[test]
fn jaeger_dependencies_are_the_edge_list_of_the_same_graph() {
    let test = "jaeger_dependencies_are_the_edge_list_of_the_same_graph";
    let Some(folder) = shared(test) else { return };
    for name in ["jaeger-dependencies-small", "jaeger-dependencies-large"] {
        let json_file = format!("raw/{name}.json");
        let from_json = play_file(&folder, "jaeger", &json_file, 500);
        let from_csv = play_file(&folder, "csv", &format!("{name}.edges.csv"), 500);
        let names = |experiment| handled(experiment).into_iter().map(|(name, _)| name);
        assert!(names(&from_json).eq(names(&from_csv)), "{name}");
        // The files list the edges in another order, which shifts the luck of each.
        let all = |experiment: &Experiment| experiment.outcomes[0].attempts.mean;
        let ratio = all(&from_json) / all(&from_csv);
        assert!((0.7..1.4).contains(&ratio), "{name}: {ratio}");
        assert_eq!(json(&from_json), json(&play_file(&folder, "jaeger", &json_file, 500)));
    }
}

#[test]
fn isotope_graphs_make_the_calls_of_their_scripts() {
    let Some(folder) = shared("isotope_graphs_make_the_calls_of_their_scripts") else { return };
    for name in ["isotope-canonical", "isotope-chain-3-services", "isotope-tree-111-services"] {
        let from_yaml = play_file(&folder, "isotope", &format!("raw/{name}.yaml"), 200);
        let from_csv = play_file(&folder, "csv", &format!("{name}.edges.csv"), 200);
        assert_eq!(handled(&from_yaml), handled(&from_csv), "{name}");
    }
}

#[test]
fn published_shapes_are_played_with_a_service_that_fails() {
    for shape in ["meta", "alibaba", "uber"] {
        let experiment = play(&format!(
            "arrivals: {{requests: 2000}}\nbackoff: none\n\
             topology: {{generated: {{shape: {shape}, services: 300}}}}\n\
             faults: [{{fails: {{service: s150}}}}]\npolicies: [none, everywhere, ownership]\n"
        ));
        let [none, everywhere, ownership] = [0, 1, 2].map(|policy| &experiment.outcomes[policy]);
        assert!(none.attempts.mean > 2000.0 && none.retries.mean == 0.0, "{shape}");
        assert!(none.availability.mean < 1.0, "{shape}: requests come to it");
        assert!(ownership.retries.mean > 0.0, "{shape}: {:?}", ownership.retries);
        assert!(everywhere.retries.mean > ownership.retries.mean, "{shape}");
        let load = ownership.load_factor.expect("a load").mean;
        assert_eq!(load, 2.0, "{shape}");
    }
}
