//! Which service a cluster of Envoy stands for.

use std::borrow::Cow;

/// The callee that `cluster` stands for: Istio's `outbound|8080|v1|reviews.shop.svc.cluster.local`
/// is `shop/reviews`, any other cluster's name is taken as it is.
pub(crate) fn of_cluster(cluster: &str) -> Cow<'_, str> {
    let host = cluster.strip_prefix("outbound|").and_then(|rest| rest.splitn(3, '|').nth(2));
    let Some(host) = host else { return cluster.into() };
    let mut labels = host.split('.');
    match (labels.next(), labels.next(), labels.next()) {
        (Some(service), Some(namespace), Some("svc")) => format!("{namespace}/{service}").into(),
        _ => host.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callees_are_services_not_clusters() {
        for (cluster, callee) in [
            ("payments", "payments"),
            ("outbound|8080||reviews.shop.svc.cluster.local", "shop/reviews"),
            ("outbound|8080|v1|reviews.shop.svc.cluster.local", "shop/reviews"),
            ("outbound|443||api.example.com", "api.example.com"),
            ("outbound|443", "outbound|443"),
            ("", ""),
        ] {
            assert_eq!(of_cluster(cluster), callee, "{cluster}");
        }
    }
}
