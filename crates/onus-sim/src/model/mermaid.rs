//! A trace as a Mermaid sequence diagram.

use std::fmt::Write;

use super::counterexample::Replay;
use super::seen::{Event, Fate};
use super::text::{reading, spell};

impl Replay {
    /// The trace as a Mermaid sequence diagram.
    #[must_use]
    pub fn mermaid(&self) -> String {
        let mut text = "sequenceDiagram\n".to_owned();
        for node in 0..self.config.topology.nodes() {
            // Writing to a string cannot fail.
            let _ = match (self.actor(node), self.name(node)) {
                (actor, name) if actor == name => writeln!(text, "    participant {actor}"),
                (actor, name) => writeln!(text, "    participant {actor} as {name}"),
            };
        }
        // The callers that wait, innermost last: whom an answer goes to.
        let mut waiting: Vec<(usize, usize)> = Vec::new();
        for event in &self.events {
            let line = self.arrow(event, &mut waiting);
            let _ = writeln!(text, "    {line}");
        }
        text
    }

    /// A name that no arrow of the diagram's language is part of.
    fn actor(&self, node: usize) -> String {
        let name = self.name(node);
        if name.chars().all(char::is_alphanumeric) { name.to_owned() } else { format!("N{node}") }
    }

    fn arrow(&self, event: &Event, waiting: &mut Vec<(usize, usize)>) -> String {
        let ends = |edge: usize| {
            let ends = self.config.topology.edges()[edge];
            (ends.from, ends.to)
        };
        match *event {
            Event::Sent { edge, number, marked } => {
                let (from, to) = ends(edge);
                waiting.push((from, to));
                let marked = if marked { ", marked" } else { "" };
                format!("{}->>{}: attempt {number}{marked}", self.actor(from), self.actor(to))
            }
            Event::Layer { edge } => {
                let (from, to) = ends(edge);
                waiting.push((from, to));
                format!("{}->>{}: again, by the layer below", self.actor(from), self.actor(to))
            }
            Event::Answers { node, fate, claim } => {
                let Some((from, _)) = waiting.pop() else {
                    return match claim {
                        None => format!("Note over {}: ok", self.actor(node)),
                        Some(claim) => {
                            format!("Note over {}: fails, {}", self.actor(node), spell(claim))
                        }
                    };
                };
                let (node, caller) = (self.actor(node), self.actor(from));
                let says = claim.map_or_else(|| "no claim".to_owned(), spell);
                match fate {
                    Fate::Ok => format!("{node}-->>{caller}: ok"),
                    Fate::Own => format!("{node}-->>{caller}: own error, {says}"),
                    Fate::Passed => format!("{node}-->>{caller}: error, {says}"),
                    Fate::Lost => format!("{node}--x{caller}: lost"),
                }
            }
            Event::Decided { edge, reads, stop } => {
                let (from, to) = ends(edge);
                let then = stop.map_or("retries", |stop| stop.as_str());
                format!(
                    "Note over {},{}: {}: {then}",
                    self.actor(from),
                    self.actor(to),
                    reading(reads)
                )
            }
            Event::Dropped { edge, waits } => {
                let (from, to) = ends(edge);
                let when = if waits { " before the retry" } else { "" };
                format!("Note over {},{}: gives up{when}", self.actor(from), self.actor(to))
            }
        }
    }
}
