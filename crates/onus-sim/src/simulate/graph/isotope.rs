//! Service graphs of Istio's load generator Isotope.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_saphyr::Spanned;

use super::{Graph, Link, Names, Step};

#[derive(Deserialize)]
struct File {
    services: Vec<Service>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Service {
    name: Spanned<String>,
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
pub(crate) fn isotope(text: &str, depth_max: u16) -> Result<Graph, String> {
    let file: File = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut names = Names::default();
    for service in &file.services {
        names.number(&service.name.value);
    }
    let known = names.names.len();
    let mut link = |command: &'_ Command| -> Result<Option<Link>, String> {
        match command {
            Command::Sleep(_) => Ok(None),
            Command::Call(Called(name)) => match names.numbers.get(name.as_str()) {
                Some(to) => Ok(Some(Link { to: *to, calls: 1.0 })),
                None => Err(format!("`{name}` is called and is none of the services")),
            },
        }
    };
    let mut steps = Vec::with_capacity(known);
    for service in &file.services {
        let mut of_service: Vec<Step> = Vec::new();
        for entry in &service.script {
            let commands: Vec<&Command> = match entry {
                Entry::One(command) => vec![command],
                Entry::AtOnce(commands) => commands.iter().collect(),
            };
            let step: Result<Vec<_>, _> = commands.into_iter().map(&mut link).collect();
            let step: Step = step?.into_iter().flatten().collect();
            if !step.is_empty() {
                of_service.push(step);
            }
        }
        steps.push(of_service);
    }
    let entries = file.services.iter().enumerate().filter(|(_, service)| service.is_entrypoint);
    let entries = entries.map(|(index, _)| (index, 1.0)).collect();
    Ok(Graph { names: names.names, steps, entries, depth_max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_steps_and_lists_in_them_are_made_at_once() {
        let text = "defaults: {requestSize: 1 KB}\nservices:\n- name: a\n- name: b\n  isEntrypoint: true\n  script:\n  - - call: a\n    - call: c\n  - sleep: 10ms\n  - call: {service: a, size: 9}\n- name: c\n";
        let graph = isotope(text, 9).unwrap();
        let to = |to| Link { to, calls: 1.0 };
        assert_eq!(graph.entries, [(1, 1.0)]);
        assert_eq!(graph.steps[1], [vec![to(0), to(2)], vec![to(0)]]);
        assert!(graph.steps[0].is_empty());
    }

    #[test]
    fn what_is_no_graph_is_refused() {
        for (text, complaint) in [
            ("services:\n- name: a\n  script: [{call: b}]\n", "`b` is called"),
            ("services:\n- name: a\n  script: [{cal: b}]\n", "line 3 column"),
        ] {
            let found = isotope(text, 9).unwrap_err();
            assert!(found.contains(complaint), "{found}");
        }
    }
}
