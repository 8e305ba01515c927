//! Graphs of services in the files of others: lists of edges in CSV, Jaeger's dependencies, and
//! Isotope's service graphs.

mod edge_list;
mod isotope;
mod jaeger;

use std::fmt;

pub use isotope::{IsotopeService, isotope};

/// The calls of one service to another, as a file lists them.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedEdge {
    /// The service that calls.
    pub caller: String,
    /// The service that is called.
    pub callee: String,
    /// How many calls there were, where the file counts them.
    pub calls: Option<f64>,
}

/// What a file lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeList {
    /// The edges, in the order of the file.
    pub edges: Vec<ListedEdge>,
    /// The first parts of the file that are no edges.
    pub refused: Vec<Refused>,
    /// How many there are in all.
    pub refused_in_all: u64,
}

/// A part of a file that is no edge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where it is.
    pub at: Place,
    /// What is wrong with it.
    pub why: String,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1 on.
    Line(usize),
    /// A line and a column, from 1 on.
    Column(usize, usize),
    /// An edge, from 1 on.
    Edge(usize),
}

/// The kinds of files that list edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListFormat {
    /// Lines of caller, callee and perhaps a number of calls, below a header.
    Csv,
    /// The answer of Jaeger's `/api/dependencies`, as it comes or with its `data` unwrapped.
    JaegerDependencies,
    /// A service graph of Istio's load generator Isotope.
    Isotope,
}

impl ListFormat {
    /// The format that a text looks like.
    #[must_use]
    pub fn of(text: &str) -> Self {
        if text.trim_start().starts_with(['[', '{']) {
            Self::JaegerDependencies
        } else if text.lines().any(|line| line.starts_with("services:")) {
            Self::Isotope
        } else {
            Self::Csv
        }
    }
}

impl EdgeList {
    /// Reads what a text lists; what is no edge is refused, and the rest is read.
    #[must_use]
    pub fn read(text: &str, format: ListFormat) -> Self {
        match format {
            ListFormat::Csv => edge_list::read(text),
            ListFormat::JaegerDependencies => jaeger::read(text),
            ListFormat::Isotope => match isotope(text) {
                Ok(services) => isotope::edges(&services),
                Err(refused) => {
                    let mut list = Self::default();
                    list.refuse(refused.at, refused.why);
                    list
                }
            },
        }
    }

    fn add(&mut self, at: Place, edge: ListedEdge) {
        if self.edges.len() < MOST {
            self.edges.push(edge);
        } else {
            self.refuse(at, format!("an edge after the first {MOST}"));
        }
    }

    fn refuse(&mut self, at: Place, why: String) {
        self.refused_in_all += 1;
        if self.refused.len() < SHOWN {
            self.refused.push(Refused { at, why });
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Place::Line(line) => write!(f, "line {line}: {}", self.why),
            Place::Column(line, column) => write!(f, "line {line} column {column}: {}", self.why),
            Place::Edge(edge) => write!(f, "edge {edge}: {}", self.why),
        }
    }
}

/// A name as it is kept: without what has power over a terminal, and no longer than names are.
fn name(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST)].replace(char::is_control, "\u{fffd}")
}

/// What a parser complains of, without the place at its end, which is told once.
fn without_place(complaint: &str) -> String {
    complaint.rsplit_once(" at line ").map_or(complaint, |(why, _)| why).to_owned()
}

/// A number of calls.
fn calls(calls: f64) -> Option<f64> {
    (calls >= 0.0 && calls.is_finite()).then_some(calls)
}

/// Four times as many as the largest mesh known has.
const MOST: usize = 1_000_000;

/// Enough to see a pattern.
const SHOWN: usize = 5;

/// Bytes; a longer name is cut.
const LONGEST: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_is_known_by_its_look() {
        for (text, expected) in [
            ("[]", ListFormat::JaegerDependencies),
            (" \n{\"data\": []}", ListFormat::JaegerDependencies),
            ("defaults:\n  x: 1\nservices:\n- name: a\n", ListFormat::Isotope),
            ("caller,callee\na,b\n", ListFormat::Csv),
            ("", ListFormat::Csv),
        ] {
            assert_eq!(ListFormat::of(text), expected, "{text}");
        }
    }

    #[test]
    fn what_is_refused_is_counted_and_shown_in_part() {
        let list = EdgeList::read(&format!("caller,callee{}", "\nx".repeat(9)), ListFormat::Csv);
        assert_eq!((list.edges.len(), list.refused.len(), list.refused_in_all), (0, SHOWN, 9));
        assert_eq!(list.refused[0].at, Place::Line(2));
    }

    #[test]
    fn names_are_cut_and_have_no_power_over_a_terminal() {
        let text = format!("caller,callee\n\u{1b}[2J,{}\n", "\u{e9}".repeat(500));
        let list = EdgeList::read(&text, ListFormat::Csv);
        assert_eq!(list.edges[0].caller, "\u{fffd}[2J");
        assert_eq!(list.edges[0].callee, "\u{e9}".repeat(128));
    }
}
