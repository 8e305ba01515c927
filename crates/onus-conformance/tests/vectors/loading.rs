//! Files that are not in the format, and vectors that make no sense, are refused with the place.

use std::fs;
use std::path::PathBuf;

use onus_conformance::Vectors;

/// Loads a folder of one step file and one tree file; the error's text.
fn load(test: &str, steps: &str, trees: &str) -> Result<Vectors, String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    for (kind, text) in [("steps", steps), ("trees", trees)] {
        fs::create_dir_all(folder.join(kind)).expect("the test's folder can be made");
        fs::write(folder.join(kind).join("some.yaml"), text).expect("and written");
    }
    Vectors::load(&folder).map_err(|error| error.chain())
}

const HEAD: &str = "- name: one\n  cites: [a-1]\n";

#[test]
fn step_files_that_are_refused() {
    for (steps, complaint) in [
        ("  steps:\n  - arrive: {}\n  - answer: {clame: none}\n", "unknown field `clame`"),
        ("  steps:\n  - leave: {}\n", "unknown variant `leave`"),
        (
            "  steps:\n  - failed: {then: stopped}\n",
            "`stopped` is no decision; one of retry, probe",
        ),
        ("  steps:\n  - at: 5 seconds\n", "`5 seconds` is no span of time"),
        ("  steps:\n  - lot: {trace: \"12\", number: 3}\n", "`12` is no trace id of 32 hex digits"),
        ("  steps:\n  - judge: {error: teapot, failure: true}\n", "`teapot` is no error"),
        ("  steps:\n  - tokens: {edge: pay, whole: 1}\n", "step 1 (tokens) names no edge"),
        ("  steps:\n  - answer: {}\n", "step 1 (answer) answers no request"),
        (
            "  edges: {pay: {}}\n  steps:\n  - call: {edge: pay}\n",
            "step 1 (call) belongs to no request",
        ),
        ("  steps:\n  - arrive: {}\n  - sent: {}\n", "step 2 (sent) comes before any call"),
        (
            "  edges: {pay: {}}\n  steps:\n  - arrive: {}\n  - call: {edge: pay}\n  - ok: {}\n",
            "step 3 (ok) does not fit how its call stands",
        ),
        (
            "  edges: {pay: {}}\n  steps:\n  - arrive: {}\n  - call: {edge: pay}\n  - call: {edge: pay}\n",
            "step 3 (call) starts a call of a name that another has",
        ),
        (
            "  edges: {pay: {}}\n  steps:\n  - arrive: {}\n  - call: {edge: pay}\n  - sent: {call: ship}\n",
            "step 3 (sent) names a call that was not started",
        ),
        ("  service: {share: 101}\n  steps: []\n", "enforces for 101 percent"),
        ("  edges: {pay: {budget: {ttl: 0}}}\n  steps: []\n", "nonzero"),
    ] {
        let error = load("steps", &format!("{HEAD}{steps}"), "[]\n").expect_err(steps);
        assert!(error.contains(complaint), "{steps}: {error}");
        assert!(error.contains("some.yaml"), "{error}");
    }
}

#[test]
fn tree_files_that_are_refused() {
    for (tree, complaint) in [
        ("topology: {chain: [A, B]}, counts: {A: 1, B: 1}, retries: 2", "unknown field `retries`"),
        ("topology: {chain: [A, A]}, counts: {A: 1}", "names a node of the chain twice"),
        ("topology: {calls: {A: [B], C: [B]}}, counts: {A: 1}", "needs exactly one node"),
        (
            "topology: {calls: {A: [B], B: [C], C: [B]}}, counts: {A: 1}",
            "has a node that calls itself in the end",
        ),
        ("topology: {chain: [A, B]}, counts: {A: 1}", "counts no requests of `B`"),
        ("topology: {chain: [A]}, counts: {A: 1, B: 1}", "names `B`, which is not"),
        ("topology: {chain: [A]}, counts: {A: 1}, nodes: {B: {}}", "names `B`, which is not"),
        (
            "topology: {chain: [A, B]}, counts: {A: 1, B: 1}, edges: [{from: B, to: A}]",
            "sets up an edge from B to A",
        ),
        (
            "topology: {chain: [A, B]}, counts: {A: 1, B: 1}, nodes: {A: {tries: 0}}",
            "lets `A` try each call 0 times",
        ),
        (
            "topology: {chain: [A, B]}, counts: {A: 1, B: 1}, parallel: [A], \
             faults: [{node: B, when: {first: 1}, what: fails}]",
            "counts requests of `B`, which parallel calls reach",
        ),
    ] {
        let trees = format!("- {{name: one, cites: [a-1], {tree}}}\n");
        let error = load("trees", "[]\n", &trees).expect_err(tree);
        assert!(error.contains(complaint), "{tree}: {error}");
    }
}

#[test]
fn names_are_unique_and_something_is_cited() {
    let step = format!("{HEAD}  steps: []\n");
    let tree = "- {name: one, cites: [a-1], topology: {chain: [A]}, counts: {A: 1}}\n";
    let error = load("names", &step, tree).expect_err("two vectors of one name");
    assert!(error.contains("the vector `one` has a name that another vector has"), "{error}");
    let error = load("cites", "- {name: one, cites: [], steps: []}\n", "[]\n").expect_err("none");
    assert!(error.contains("cites no sentence"), "{error}");
    let loaded = load("fine", &step, "[]\n").expect("one vector of each name");
    assert_eq!(loaded.steps.len(), 1);
}

#[test]
fn errors_show_the_line() {
    let steps = format!("{HEAD}  steps:\n  - arrive: {{}}\n  - answer: {{clame: none}}\n");
    let error = load("line", &steps, "[]\n").expect_err("a wrong field");
    assert!(error.contains("5 |   - answer: {clame: none}"), "{error}");
}

#[test]
fn a_missing_folder_is_named() {
    let error = Vectors::load(&PathBuf::from("no/such/folder")).expect_err("it is not there");
    assert!(error.chain().starts_with("read no/such/folder/steps: "), "{}", error.chain());
}
