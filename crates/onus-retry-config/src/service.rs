//! Names of services, as configurations write them.

use std::fmt;

/// A service: what a host name means, with the namespace where it has one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Service {
    /// Its name; a host outside of the cluster is a name by itself. `*` is every service.
    pub name: String,
    /// The namespace it is in.
    pub namespace: Option<String>,
}

impl Service {
    /// A service of a namespace.
    #[must_use]
    pub fn new(name: impl Into<String>, namespace: Option<&str>) -> Self {
        Self { name: name.into(), namespace: namespace.map(str::to_owned) }
    }

    /// What `host` means in something that belongs to `namespace`: `reviews`, `reviews.shop` and
    /// `reviews.shop.svc.cluster.local`, with or without a port, are one service there.
    #[must_use]
    pub fn of_host(host: &str, namespace: Option<&str>) -> Self {
        let host = host.split(':').next().unwrap_or(host).trim_end_matches('.');
        if let Some(within) = host.strip_prefix("*.") {
            let within = within.split(".svc").next().filter(|within| !within.contains('.'));
            return Self { name: "*".to_owned(), namespace: within.map(str::to_owned) };
        }
        let mut parts = host.split('.');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(name), Some(of), Some("svc")) => Self::new(name, Some(of)),
            (Some(name), Some(of), None) => Self::new(name, Some(of)),
            (Some("*"), None, None) => Self::new("*", None),
            (Some(name), None, None) => Self::new(name, namespace),
            _ => Self::new(host, None),
        }
    }

    /// Whether a name in a configuration means `service`; where one of the two has no namespace,
    /// names alone decide.
    #[must_use]
    pub fn means(&self, service: &Self) -> bool {
        let namespace = match (&self.namespace, &service.namespace) {
            (Some(own), Some(other)) => own == other,
            (None, _) | (_, None) => true,
        };
        namespace && (self.name == "*" || self.name == service.name)
    }
}

impl fmt::Display for Service {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.namespace {
            Some(namespace) => write!(formatter, ".{namespace}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_means() {
        for (host, expected) in [
            ("reviews", "reviews.shop"),
            ("reviews:9080", "reviews.shop"),
            ("reviews.prod", "reviews.prod"),
            ("reviews.prod.svc", "reviews.prod"),
            ("reviews.prod.svc.cluster.local", "reviews.prod"),
            ("reviews.prod.svc.cluster.local.:80", "reviews.prod"),
            ("api.pay.example.com", "api.pay.example.com"),
            ("*", "*"),
            ("*.prod.svc.cluster.local", "*.prod"),
            ("*.example.com", "*"),
        ] {
            assert_eq!(Service::of_host(host, Some("shop")).to_string(), expected, "{host}");
        }
    }

    #[test]
    fn a_name_without_a_namespace_means_all_that_are_called_so() {
        let named = |host| Service::of_host(host, None);
        for (configured, service, expected) in [
            ("reviews.shop", "reviews.shop", true),
            ("reviews.shop", "reviews.prod", false),
            ("reviews", "reviews.prod", true),
            ("reviews.shop", "reviews", true),
            ("*", "reviews.prod", true),
            ("*.shop.svc", "reviews.prod", false),
            ("review", "reviews", false),
        ] {
            assert_eq!(
                named(configured).means(&named(service)),
                expected,
                "{configured} {service}"
            );
        }
    }
}
