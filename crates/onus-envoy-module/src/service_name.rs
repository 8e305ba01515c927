//! What the service beside this Envoy is called, where its configuration does not say.

use std::env;

/// The name in the environment: `ONUS_SERVICE`, else what Istio tells its proxies of the workload.
pub(crate) fn from_environment() -> Option<String> {
    choose(|name| env::var(name).ok())
}

fn choose(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let istio = || {
        let workload = variable("ISTIO_META_WORKLOAD_NAME")?;
        Some(format!("{}/{workload}", variable("POD_NAMESPACE")?))
    };
    variable("ONUS_SERVICE").or_else(istio).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_service() {
        const ISTIO: &[(&str, &str)] =
            &[("ISTIO_META_WORKLOAD_NAME", "checkout"), ("POD_NAMESPACE", "shop")];
        let own = [&[("ONUS_SERVICE", "own")], ISTIO].concat();
        for (variables, name) in [
            (&[][..], None),
            (&ISTIO[..1], None),
            (ISTIO, Some("shop/checkout")),
            (&own, Some("own")),
            (&[("ONUS_SERVICE", "")], None),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(choose(variable).as_deref(), name, "{variables:?}");
        }
    }
}
