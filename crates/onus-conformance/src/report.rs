//! Running vectors against a host, and what came of it.

use std::fmt::{self, Write};

use crate::host::{Counts, Host, Observation};
use crate::step::StepVector;
use crate::tree::{TreeAnswer, TreeVector};
use crate::vectors::Vectors;

/// Runs every vector against the host.
pub fn run_all(host: &mut dyn Host, vectors: &Vectors) -> Report {
    let steps = vectors.steps.iter().map(|vector| {
        let outcome = match host.run_steps(vector) {
            Ok(seen) => judge_steps(vector, &seen),
            Err(reason) => Outcome::Unsupported(reason.0),
        };
        (vector.name.clone(), outcome)
    });
    let mut outcomes: Vec<_> = steps.collect();
    outcomes.extend(vectors.trees.iter().map(|vector| {
        let outcome = match host.run_tree(vector) {
            Ok(counts) => judge_tree(vector, &counts),
            Err(reason) => Outcome::Unsupported(reason.0),
        };
        (vector.name.clone(), outcome)
    }));
    Report { host: host.name().to_owned(), outcomes }
}

/// What came of the vectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The host.
    pub host: String,
    /// Each vector's name and what came of it, in the order of the vectors.
    pub outcomes: Vec<(String, Outcome)>,
}

/// What came of a vector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All that was asked for was seen, but for what the host cannot see.
    Passed {
        /// What the vector asked for and the host did not report.
        unseen: Vec<String>,
    },
    /// Something else was seen; the difference, for people.
    Failed(String),
    /// The host cannot act the vector out, and why.
    Unsupported(String),
}

impl Report {
    /// The names of the vectors that the host cannot act out.
    pub fn unsupported(&self) -> impl Iterator<Item = &str> {
        let unsupported =
            |(_, outcome): &&(String, Outcome)| matches!(outcome, Outcome::Unsupported(_));
        self.outcomes.iter().filter(unsupported).map(|(name, _)| name.as_str())
    }

    /// Panics with the report if a vector failed.
    ///
    /// # Panics
    ///
    /// If a vector failed, or none was run.
    pub fn assert_none_failed(&self) {
        let failed = |(_, outcome): &(String, Outcome)| matches!(outcome, Outcome::Failed(_));
        assert!(!self.outcomes.iter().any(failed), "{self}");
        assert!(self.outcomes.iter().any(|(_, outcome)| outcome.passed()), "{self}");
    }

    /// Panics with the report if a vector failed, was not acted out, or asked for something that
    /// the host does not report.
    ///
    /// # Panics
    ///
    /// If anything that the vectors ask for was not seen.
    pub fn assert_all_seen(&self) {
        let nothing = Outcome::Passed { unseen: Vec::new() };
        assert!(self.outcomes.iter().all(|(_, outcome)| *outcome == nothing), "{self}");
        self.assert_none_failed();
    }
}

impl Outcome {
    const fn passed(&self) -> bool {
        match self {
            Self::Passed { .. } => true,
            Self::Failed(_) | Self::Unsupported(_) => false,
        }
    }
}

impl fmt::Display for Report {
    /// The failures with their differences, then what was not run, then what was not seen.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.outcomes.iter().filter(|(_, outcome)| outcome.passed()).count();
        writeln!(f, "{}: {passed} of {} vectors passed", self.host, self.outcomes.len())?;
        for (name, outcome) in &self.outcomes {
            if let Outcome::Failed(difference) = outcome {
                write!(f, "\nfailed: {name}\n{difference}")?;
            }
        }
        for (name, outcome) in &self.outcomes {
            if let Outcome::Unsupported(reason) = outcome {
                writeln!(f, "not run: {name}: {reason}")?;
            }
        }
        for (name, outcome) in &self.outcomes {
            if let Outcome::Passed { unseen } = outcome
                && !unseen.is_empty()
            {
                writeln!(f, "not seen: {name}: {}", unseen.join("; "))?;
            }
        }
        Ok(())
    }
}

fn judge_steps(vector: &StepVector, seen: &[Observation]) -> Outcome {
    let asked = vector.steps.len();
    if seen.len() != asked {
        let observations = seen.len();
        return Outcome::Failed(format!("  {asked} steps, {observations} observations\n"));
    }
    let mut unseen = Vec::new();
    let mut difference = String::new();
    for (index, (step, seen)) in vector.steps.iter().zip(seen).enumerate() {
        let place = format!("step {} ({})", index + 1, step.word());
        for expected in step.expected() {
            match expected.is_met(seen) {
                Some(true) => {}
                Some(false) => {
                    let facts: Vec<_> = seen.0.iter().map(ToString::to_string).collect();
                    let facts = facts.join(", ");
                    let _ = writeln!(difference, "  {place}: expected {expected}; seen {facts}");
                }
                None => unseen.push(format!("{place} {expected}")),
            }
        }
    }
    if difference.is_empty() { Outcome::Passed { unseen } } else { Outcome::Failed(difference) }
}

fn judge_tree(vector: &TreeVector, counts: &Counts) -> Outcome {
    let counted = |node: &String| counts.requests.get(node).copied().unwrap_or(0);
    let mut table = format!("  {:<20} {:>9} {:>9}\n", "node", "expected", "counted");
    for (node, expected) in &vector.counts {
        let counted = counted(node);
        let mark = if counted == *expected { "" } else { "  <--" };
        let _ = writeln!(table, "  {node:<20} {expected:>9} {counted:>9}{mark}");
    }
    let mut unseen = Vec::new();
    let mut same = vector.counts.iter().all(|(node, expected)| counted(node) == *expected);
    if let Some(expected) = vector.answer {
        match counts.answer {
            None => unseen.push(format!("answer: {}", expected.as_str())),
            Some(answer) => {
                same &= answer == expected;
                let [expected, answer] = [expected, answer].map(TreeAnswer::as_str);
                let _ = writeln!(table, "  the client expected {expected}, read {answer}");
            }
        }
    }
    if same { Outcome::Passed { unseen } } else { Outcome::Failed(table) }
}
