//! Which callee an authority means. One that two callees are given would send the calls of one to
//! the other, by the order of their names.

use std::collections::{HashMap, HashSet};

use super::ProxyConfigError;
use super::meant::CalleeConfig;

/// Refuses an authority that two callees are given, and drops what the addresses of several imply.
pub(super) fn settle(callees: &mut [CalleeConfig]) -> Result<(), ProxyConfigError> {
    let mut said: HashMap<String, &str> = HashMap::new();
    for callee in callees.iter() {
        for host in &callee.hosts {
            let before = said.insert(host.to_ascii_lowercase(), &callee.name);
            if before.is_some_and(|before| before != callee.name) {
                return Err(ProxyConfigError::Value {
                    field: format!("callees.{}.hosts", callee.name),
                    value: host.clone(),
                    allowed: "an authority that no other callee has",
                });
            }
        }
    }
    let said: HashSet<String> = said.into_keys().collect();
    let mut implied: HashMap<String, usize> = HashMap::new();
    for callee in callees.iter() {
        let hosts = callee.implied_hosts.iter().map(|host| host.to_ascii_lowercase());
        for host in hosts.collect::<HashSet<_>>() {
            *implied.entry(host).or_default() += 1;
        }
    }
    for callee in callees {
        callee.implied_hosts.retain(|host| {
            let host = host.to_ascii_lowercase();
            !said.contains(&host) && implied.get(&host) == Some(&1)
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::{ConfigFile, ProxyConfig};

    #[test]
    fn an_authority_means_one_callee() {
        fn check(callees: &str, expected: Result<&[&str], &str>) {
            let yaml = format!("service: a\ncallees: {{{callees}}}");
            let read = ConfigFile::parse(&yaml).and_then(ProxyConfig::new);
            let hosts = read.map(|config| {
                let all = config.callees.iter().flat_map(|callee| {
                    let hosts = callee.hosts.iter().chain(&callee.implied_hosts);
                    hosts.map(|host| format!("{} {host}", callee.name))
                });
                all.collect::<Vec<_>>()
            });
            match expected {
                Ok(expected) => assert_eq!(hosts.expect("it can be used"), expected, "{callees}"),
                Err(says) => {
                    let said = hosts.expect_err("it cannot be used").to_string();
                    assert!(said.contains(says), "{says}\nis not in\n{said}");
                }
            }
        }
        let twice = "is \"x\"; allowed is an authority that no other callee has";
        check("b: {address: \"p:1\", hosts: [x]}", Ok(&["b x", "b b", "b p:1", "b p"]));
        check(
            "b: {address: \"p:1\", hosts: [x, X, b]}",
            Ok(&["b x", "b X", "b b", "b b", "b p:1", "b p"]),
        );
        check("b: {address: \"p:1\", hosts: [X]}, c: {address: \"q:1\", hosts: [x]}", Err(twice));
        check("b: {address: \"p:1\", hosts: [x]}, x: {address: \"q:1\"}", Err(twice));
        // One gateway in front of both: what tells them apart are their own hosts.
        check("b: {address: \"p:1\"}, c: {address: \"p:1\"}", Ok(&["b b", "c c"]));
        check(
            "b: {address: \"p:1\"}, c: {address: \"p:2\"}",
            Ok(&["b b", "b p:1", "c c", "c p:2"]),
        );
        check(
            "b: {address: \"p:1\"}, c: {address: \"q:1\", hosts: [p]}",
            Ok(&["b b", "b p:1", "c p", "c c", "c q:1", "c q"]),
        );
    }
}
