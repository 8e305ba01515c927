//! Service graphs of Istio's load generator Isotope.

use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;

use super::{EdgeList, ListedEdge, Place, Refused, name, without_place};

/// A service of Isotope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsotopeService {
    /// Its name.
    pub name: String,
    /// Whether requests from outside reach it.
    pub is_entry: bool,
    /// Whom it calls, step by step; the calls of one step are made at once.
    pub steps: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct File {
    services: Vec<Service>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: String,
    #[serde(default)]
    is_entrypoint: bool,
    #[serde(default)]
    script: Vec<Entry>,
}

/// A step of a script: one command, or several at once.
enum Entry {
    One(Command),
    AtOnce(Vec<Command>),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Command {
    /// A call of a service.
    Call(Called),
    /// Time passes; the scenario says how long services work.
    Sleep(IgnoredAny),
}

/// The callee, by name or with what is sent to it.
struct Called(String);

impl<'de> Deserialize<'de> for Called {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Full {
            service: String,
        }
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Called;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a service, or `service: NAME`")
            }
            fn visit_str<E>(self, name: &str) -> Result<Called, E> {
                Ok(Called(name.to_owned()))
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Called, A::Error> {
                Full::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(|full| Called(full.service))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> serde::de::Visitor<'de> for Either {
            type Value = Entry;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a command, or a list of commands")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Entry, A::Error> {
                Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(list))
                    .map(Entry::AtOnce)
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                Command::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                    .map(Entry::One)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// Reads a service graph of Isotope.
///
/// # Errors
///
/// If it is none, or a service is called that it does not have.
pub fn isotope(text: &str) -> Result<Vec<IsotopeService>, Refused> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| refused(&error))?;
    let known: BTreeSet<&str> = file.services.iter().map(|service| &*service.name).collect();
    let callee = |command: &Command| match command {
        Command::Sleep(_) => None,
        Command::Call(Called(name)) => Some(name.clone()),
    };
    let step = |entry: &Entry| -> Vec<String> {
        match entry {
            Entry::One(command) => callee(command).into_iter().collect(),
            Entry::AtOnce(commands) => commands.iter().filter_map(callee).collect(),
        }
    };
    let mut services = Vec::with_capacity(file.services.len());
    for service in &file.services {
        let mut steps: Vec<_> = service.script.iter().map(step).collect();
        steps.retain(|step| !step.is_empty());
        if let Some(unknown) = steps.iter().flatten().find(|name| !known.contains(name.as_str())) {
            let why = format!("`{}` is called and is none of the services", name(unknown));
            let line = text.lines().position(|line| line.contains(unknown.as_str()));
            return Err(Refused { at: Place::Line(line.unwrap_or(0) + 1), why });
        }
        let name = service.name.clone();
        services.push(IsotopeService { name, is_entry: service.is_entrypoint, steps });
    }
    Ok(services)
}

/// The calls of all scripts, each counted once for a request.
pub(super) fn edges(services: &[IsotopeService]) -> EdgeList {
    let mut list = EdgeList::default();
    for (number, service) in services.iter().enumerate() {
        for callee in service.steps.iter().flatten() {
            let (caller, callee) = (name(&service.name), name(callee));
            list.add(Place::Edge(number + 1), ListedEdge { caller, callee, calls: None });
        }
    }
    list
}

/// Why and where, without the lines around it.
fn refused(error: &serde_saphyr::Error) -> Refused {
    let at = error
        .location()
        .map_or(Place::Line(1), |at| Place::Column(at.line() as usize, at.column() as usize));
    Refused { at, why: without_place(&error.without_snippet().to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_steps_and_lists_in_them_are_made_at_once() {
        let text = "defaults: {requestSize: 1 KB}\nservices:\n- name: a\n- name: b\n  isEntrypoint: true\n  script:\n  - - call: a\n    - call: c\n  - sleep: 10ms\n  - call: {service: a, size: 9}\n- name: c\n";
        let services = isotope(text).unwrap();
        let entries: Vec<_> = services.iter().map(|it| (it.name.as_str(), it.is_entry)).collect();
        assert_eq!(entries, [("a", false), ("b", true), ("c", false)]);
        assert_eq!(services[1].steps, [vec!["a", "c"], vec!["a"]]);
        assert!(services[0].steps.is_empty());
        let edges = EdgeList::read(text, super::super::ListFormat::Isotope).edges;
        let edges: Vec<_> = edges.iter().map(|it| (&*it.caller, &*it.callee, it.calls)).collect();
        assert_eq!(edges, [("b", "a", None), ("b", "c", None), ("b", "a", None)]);
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for (text, complaint) in [
            ("services:\n- name: a\n  script: [{call: b}]\n", "line 3: `b` is called"),
            (
                "services:\n- name: a\n  script: [{cal: b}]\n",
                "line 3 column 13: unknown variant `cal`, expected one of call, sleep",
            ),
            ("services: 7\n", "line 1 column"),
            ("", "line 1"),
        ] {
            let found = isotope(text).unwrap_err().to_string();
            assert!(found.starts_with(complaint), "{found}");
        }
    }
}
