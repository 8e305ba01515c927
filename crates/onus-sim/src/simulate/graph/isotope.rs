//! Service graphs of Istio's load generator Isotope.

use super::{Graph, Link, Names};

/// Reads a service graph of Isotope. The scenario says how long services work.
pub(crate) fn isotope(text: &str, depth_max: u16) -> Result<Graph, String> {
    let services = onus_graph::isotope(text).map_err(|refused| refused.to_string())?;
    let mut names = Names::default();
    for service in &services {
        names.number(&service.name);
    }
    let mut steps = Vec::with_capacity(services.len());
    for service in &services {
        let mut of_service = Vec::with_capacity(service.steps.len());
        for step in &service.steps {
            let link = |name| Link { to: names.number(name), calls: 1.0 };
            of_service.push(step.iter().map(|name| name.as_str()).map(link).collect());
        }
        steps.push(of_service);
    }
    let entries = services.iter().enumerate().filter(|(_, service)| service.is_entry);
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
