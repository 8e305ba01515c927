//! The services and edges of a user, as YAML.

use std::collections::BTreeMap;

use onus_core::EdgeClass;
use serde::Deserialize;
use serde_saphyr::Spanned;

use super::config::{Config, Faults, Retries, Role, Setting, Switches};
use super::mesh::Mesh;
use super::topology::{Ends, Fan, Topology};
use crate::file_error::{Fault, FileError, at};

impl Mesh {
    /// Reads services and edges from YAML. `name` stands in messages.
    ///
    /// # Errors
    ///
    /// What makes no sense, its place, and what is allowed.
    pub fn from_yaml(name: &str, text: &str) -> Result<Self, FileError> {
        let file: MeshFile = serde_saphyr::from_str(text)
            .map_err(|error| FileError::of_parser(name, text, &error))?;
        file.mesh().map_err(|fault| FileError::new(name, text, fault))
    }
}

/// A mesh as typed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct MeshFile {
    /// The service that clients call.
    entry: Spanned<String>,
    /// The setting `silent-claims` of all services.
    #[serde(default)]
    silent_claims: bool,
    /// Services that are not ordinary: by default they enforce and keep their context.
    #[serde(default)]
    services: Vec<ServiceFile>,
    /// Who calls whom, in the order of each caller's calls.
    edges: Vec<EdgeFile>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ServiceFile {
    name: Spanned<String>,
    /// How far ownership reaches at the service.
    #[serde(default)]
    mode: ModeFile,
    /// Whether its calls can be tied to the requests it serves.
    #[serde(default)]
    context: ContextFile,
    /// How it makes its calls.
    #[serde(default)]
    calls: CallsFile,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeFile {
    #[default]
    Enforce,
    Observe,
    Off,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ContextFile {
    #[default]
    Kept,
    Lost,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CallsFile {
    #[default]
    Sequence,
    Parallel,
    Fallback,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct EdgeFile {
    from: Spanned<String>,
    to: Spanned<String>,
    /// The attempts of the retry policy; 1 is none.
    attempts: Option<Spanned<u32>>,
    /// What a failure does to the caller.
    #[serde(default)]
    class: ClassFile,
    /// What the caller holds the class to be; by default what it is.
    held: Option<ClassFile>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ClassFile {
    #[default]
    FailClose,
    FailOpen,
    Unknown,
}

impl MeshFile {
    fn mesh(self) -> Result<Mesh, Fault> {
        for edge in &self.edges {
            edge.check()?;
        }
        let order = self.callers_first()?;
        if order.len() > SERVICES_MAX {
            let message =
                format!("{} services are reachable; allowed is 2 to {SERVICES_MAX}", order.len());
            return Err(at(&self.entry, message));
        }
        let number: BTreeMap<_, _> = order.iter().zip(0..).map(|(name, at)| (*name, at)).collect();
        let ends = self.edges.iter().map(|edge| Ends {
            from: number[edge.from.value.as_str()],
            to: number[edge.to.value.as_str()],
        });
        let mut topology = Topology::new(order.len(), ends.collect());
        let mut roles = vec![Role::Correlated; order.len()];
        for (at_service, service) in self.services.iter().enumerate() {
            let name = &service.name;
            let Some(&node) = number.get(name.value.as_str()) else {
                let message = format!(
                    "no edge reaches the service `{}` from `{}`; name services as the edges do",
                    name.value, self.entry.value
                );
                return Err(at(name, message));
            };
            if self.services[..at_service].iter().any(|other| other.name.value == name.value) {
                let message = format!("the service `{}` is there already", name.value);
                return Err(at(name, message));
            }
            roles[node] = service.role()?;
            topology = topology.with_fan(node, service.fan());
        }
        let config = Config {
            topology: topology.with_names(order.into_iter().map(ToOwned::to_owned).collect()),
            edges: self.edges.iter().map(EdgeFile::setting).collect(),
            roles,
            switches: Switches { silent_claims: self.silent_claims, probes: false },
            faults: Faults::OWN,
        };
        Ok(Mesh::new(config))
    }

    /// Every service that the entry reaches, callers before callees.
    fn callers_first(&self) -> Result<Vec<&str>, Fault> {
        let entry = &self.entry.value;
        if self.edges.is_empty() {
            return Err(at(&self.entry, "nothing is called; name at least one edge".to_owned()));
        }
        if let Some(edge) = self.edges.iter().find(|edge| edge.to.value == *entry) {
            let message = format!("`{entry}` is the entry, and a call of it closes a cycle");
            return Err(at(&edge.to, message));
        }
        let mut order = vec![entry.as_str()];
        let mut open: Vec<_> = self.edges.iter().collect();
        // A service is placed when all of its callers are.
        while !open.is_empty() {
            let waits = |name: &str| open.iter().any(|edge| edge.to.value == name);
            let next = open.iter().position(|edge| {
                order.contains(&edge.from.value.as_str()) && !waits(&edge.from.value)
            });
            let Some(next) = next else { return Err(self.unplaced(&open, &order)) };
            let edge = open.remove(next);
            let to = edge.to.value.as_str();
            if !open.iter().any(|edge| edge.to.value == to) && !order.contains(&to) {
                order.push(to);
            }
        }
        Ok(order)
    }

    /// Why none of these edges can be placed.
    fn unplaced(&self, open: &[&EdgeFile], order: &[&str]) -> Fault {
        let into = |name: &str| open.iter().find(|edge| edge.to.value == name);
        let unreachable = open.iter().find(|edge| {
            !order.contains(&edge.from.value.as_str()) && into(&edge.from.value).is_none()
        });
        if let Some(edge) = unreachable {
            let message = format!(
                "no edge reaches the caller `{}` from the entry `{}`",
                edge.from.value, self.entry.value
            );
            return at(&edge.from, message);
        }
        let edge = open[0];
        let message = format!(
            "`{}` and `{}` are part of a cycle, or are called from one; calls must end somewhere",
            edge.from.value, edge.to.value
        );
        at(&edge.to, message)
    }
}

impl ServiceFile {
    fn role(&self) -> Result<Role, Fault> {
        match (self.mode, self.context) {
            (ModeFile::Enforce, ContextFile::Kept) => Ok(Role::Correlated),
            (ModeFile::Enforce, ContextFile::Lost) => Ok(Role::ContextLost),
            (ModeFile::Observe, ContextFile::Kept) => Ok(Role::Observing),
            (ModeFile::Off, ContextFile::Kept) => Ok(Role::NonCooperative),
            (ModeFile::Observe | ModeFile::Off, ContextFile::Lost) => {
                let message = "`context: lost` is checked beside `mode: enforce` only".to_owned();
                Err(at(&self.name, message))
            }
        }
    }

    const fn fan(&self) -> Fan {
        match self.calls {
            CallsFile::Sequence => Fan::Sequence,
            CallsFile::Parallel => Fan::Parallel,
            CallsFile::Fallback => Fan::Fallback,
        }
    }
}

impl EdgeFile {
    fn check(&self) -> Result<(), Fault> {
        if let Some(attempts) = &self.attempts
            && !(1..=ATTEMPTS_MAX).contains(&attempts.value)
        {
            let message = format!("{} attempts; allowed is 1 to {ATTEMPTS_MAX}", attempts.value);
            return Err(at(attempts, message));
        }
        if self.class == ClassFile::Unknown {
            let message =
                "an edge is `fail-close` or `fail-open`; only `held` may be `unknown`".to_owned();
            return Err(at(&self.to, message));
        }
        for name in [&self.from, &self.to] {
            let fits = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
            if name.value.is_empty() || !name.value.chars().all(fits) {
                let message =
                    format!("`{}` is no name; allowed are letters, digits and - _ . /", name.value);
                return Err(at(name, message));
            }
        }
        Ok(())
    }

    fn setting(&self) -> Setting {
        let attempts = self.attempts.as_ref().map_or(1, |attempts| attempts.value);
        let retries =
            if attempts < 2 { Retries::NotConfigured } else { Retries::Attempts(attempts) };
        let held = self.held.unwrap_or(self.class);
        Setting { retries, open: self.class == ClassFile::FailOpen, held: held.class() }
    }
}

impl ClassFile {
    const fn class(self) -> EdgeClass {
        match self {
            Self::FailClose => EdgeClass::FailClose,
            Self::FailOpen => EdgeClass::FailOpen,
            Self::Unknown => EdgeClass::Unknown,
        }
    }
}

/// Sets of services are bits of one number.
const SERVICES_MAX: usize = 64;
const ATTEMPTS_MAX: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_told_with_their_place_and_what_is_allowed() {
        for (edges, place, complaint) in [
            ("{from: a, to: b, tries: 2}", "3:20", "unknown field `tries`, expected one of"),
            ("{from: a, to: b, class: open}", "3:27", "expected one of fail-close, fail-open"),
            ("{from: a, to: b, attempts: 11}", "3:30", "11 attempts; allowed is 1 to 10"),
            ("{from: a, to: a}", "3:17", "`a` is the entry, and a call of it closes a cycle"),
            ("{from: a, to: 'b c'}", "3:17", "`b c` is no name; allowed are letters"),
            ("{from: a, to: b, class: unknown}", "3:17", "only `held` may be `unknown`"),
            ("{from: a, to: b}, {from: b, to: c}, {from: c, to: b}", "3:35", "`b` and `c` are"),
            ("{from: a, to: b}, {from: x, to: b}", "3:28", "no edge reaches the caller `x`"),
            ("{from: a, to: b}]\nservices: [{name: x}", "4:19", "no edge reaches the service `x`"),
            ("{from: a, to: b}]\nservices: [{name: b}, {name: b}", "4:30", "`b` is there already"),
            (
                "{from: a, to: b}]\nservices: [{name: b, mode: off, context: lost}",
                "4:19",
                "`context: lost` is checked beside `mode: enforce` only",
            ),
            ("", "1:8", "nothing is called; name at least one edge"),
        ] {
            let text = format!("entry: a\nedges:\n [{edges}]\n");
            let error = Mesh::from_yaml("mesh.yaml", &text).expect_err(edges);
            let found = error.place.map(|(line, column)| format!("{line}:{column}"));
            assert_eq!(found.as_deref(), Some(place), "{error}");
            assert!(error.message.contains(complaint), "{error}");
        }
    }

    #[test]
    fn services_are_no_more_than_fit() {
        let edges = (0..64).map(|to| format!(" - {{from: a, to: b{to}}}\n")).collect::<String>();
        let error = Mesh::from_yaml("mesh.yaml", &format!("entry: a\nedges:\n{edges}"));
        let error = error.expect_err("65 services");
        assert_eq!(error.message, "65 services are reachable; allowed is 2 to 64");
    }
}
