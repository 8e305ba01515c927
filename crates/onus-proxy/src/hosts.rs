//! Which of several callees an authority means.

use std::collections::HashMap;

/// Callees by the hosts under which they are called, in lower case.
#[derive(Debug)]
pub(crate) struct Hosts<T>(HashMap<String, T>);

impl<T> Hosts<T> {
    pub(crate) fn insert(&mut self, host: &str, callee: T) {
        self.0.insert(host.to_ascii_lowercase(), callee);
    }

    /// The callee of this authority, with its port or without.
    pub(crate) fn find(&self, authority: &str) -> Option<&T> {
        if let Some(callee) = self.0.get(authority) {
            return Some(callee);
        }
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        self.0.get(host).or_else(|| {
            let has_upper = authority.bytes().any(|byte| byte.is_ascii_uppercase());
            if has_upper { self.find(&authority.to_ascii_lowercase()) } else { None }
        })
    }
}

impl<T> Default for Hosts<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_in_any_case_with_any_port() {
        let mut hosts = Hosts::default();
        for host in ["Peer", "peer.shop:8080", "[::1]:80"] {
            hosts.insert(host, host);
        }
        for (authority, found) in [
            ("peer", Some("Peer")),
            ("PEER:443", Some("Peer")),
            ("Peer.Shop:8080", Some("peer.shop:8080")),
            ("peer.shop", None),
            ("peer.shop:80", None),
            ("[::1]:80", Some("[::1]:80")),
            ("[::1]", None),
            ("", None),
            (":", None),
        ] {
            assert_eq!(hosts.find(authority).copied(), found, "{authority}");
        }
    }
}
