//! What the runner makes of hosts that see too little, see something else, or refuse.

use onus_conformance::{
    CoreHost, Counts, Fact, Host, Observation, Outcome, StepVector, TreeVector, Unsupported,
    Vectors, run_all,
};

/// A host that runs the core and then changes what it saw.
struct Lying {
    steps: fn(&mut Vec<Observation>),
    tree: fn(&mut Counts),
}

impl Host for Lying {
    fn name(&self) -> &str {
        "lying"
    }

    fn run_steps(&mut self, vector: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        let mut seen = CoreHost.run_steps(vector)?;
        (self.steps)(&mut seen);
        Ok(seen)
    }

    fn run_tree(&mut self, vector: &TreeVector) -> Result<Counts, Unsupported> {
        let mut counts = CoreHost.run_tree(vector)?;
        (self.tree)(&mut counts);
        Ok(counts)
    }
}

/// A host that can do nothing.
struct Helpless;

impl Host for Helpless {
    fn name(&self) -> &str {
        "helpless"
    }

    fn run_steps(&mut self, _: &StepVector) -> Result<Vec<Observation>, Unsupported> {
        Err("has no steps".into())
    }

    fn run_tree(&mut self, _: &TreeVector) -> Result<Counts, Unsupported> {
        Err("has no trees".into())
    }
}

fn one_step() -> Vectors {
    Vectors::shipped().named("row 7, a shorter draw fits")
}

fn one_tree() -> Vectors {
    Vectors::shipped().named("C loses the context")
}

fn check(steps: fn(&mut Vec<Observation>), tree: fn(&mut Counts), vectors: &Vectors) -> Outcome {
    let report = run_all(&mut Lying { steps, tree }, vectors);
    assert_eq!(report.outcomes.len(), 1, "{report}");
    report.outcomes[0].1.clone()
}

#[test]
fn differences_name_the_step_and_what_was_seen() {
    let wrong = |seen: &mut Vec<Observation>| {
        for fact in seen.iter_mut().flat_map(|seen| &mut seen.0) {
            if let Fact::Wait(wait) = fact {
                *wait *= 2;
            }
        }
    };
    let Outcome::Failed(difference) = check(wrong, |_| {}, &one_step()) else {
        panic!("a wrong wait passed");
    };
    let expected = "step 5 (failed): expected wait: 22ms to 23ms; seen then: retry";
    assert!(difference.contains(expected), "{difference}");
    assert!(difference.contains("wait: 45ms"), "{difference}");
}

#[test]
fn one_observation_for_each_step() {
    let short = check(|seen| drop(seen.pop()), |_| {}, &one_step());
    assert_eq!(short, Outcome::Failed("  5 steps, 4 observations\n".to_owned()));
}

#[test]
fn what_was_not_seen_is_listed() {
    let blind = |seen: &mut Vec<Observation>| seen.iter_mut().for_each(|seen| seen.0.clear());
    let unseen = vec!["step 5 (failed) then: retry", "step 5 (failed) wait: 22ms to 23ms"];
    let unseen = unseen.into_iter().map(str::to_owned).collect();
    assert_eq!(check(blind, |_| {}, &one_step()), Outcome::Passed { unseen });
    let without_answer = check(|_| {}, |counts| counts.answer = None, &one_tree());
    let unseen = vec!["answer: unclaimed".to_owned()];
    assert_eq!(without_answer, Outcome::Passed { unseen });
}

#[test]
fn wrong_counts_are_marked() {
    let more = |counts: &mut Counts| *counts.requests.entry("D".to_owned()).or_default() += 4;
    let Outcome::Failed(table) = check(|_| {}, more, &one_tree()) else {
        panic!("wrong counts passed");
    };
    assert!(table.contains("D                            4         8  <--\n"), "{table}");
    assert!(table.contains("C                            2         2\n"), "{table}");
    let Outcome::Failed(_) = check(|_| {}, |counts| counts.answer = Some(ANSWER), &one_tree())
    else {
        panic!("a wrong answer passed");
    };
}

const ANSWER: onus_conformance::tree::TreeAnswer = onus_conformance::tree::TreeAnswer::Ok;

#[test]
fn what_is_not_supported_is_listed_and_does_not_pass() {
    let mut vectors = one_step();
    vectors.trees = one_tree().trees;
    let report = run_all(&mut Helpless, &vectors);
    let names: Vec<_> = report.unsupported().collect();
    assert_eq!(names, ["row 7, a shorter draw fits", "C loses the context"]);
    let text = report.to_string();
    assert!(text.contains("helpless: 0 of 2 vectors passed"), "{text}");
    assert!(text.contains("not run: C loses the context: has no trees"), "{text}");
    let asserted = std::panic::catch_unwind(|| report.assert_none_failed());
    assert!(asserted.is_err(), "a host that runs nothing passed");
}
