//! Route templates: which one a path follows.

use std::sync::Arc;

use matchit::Router;
use onus::Procedure;

/// Route templates such as `/pay/{id}`.
#[derive(Clone)]
pub(crate) struct Routes(Arc<Router<Procedure>>);

/// A template that cannot stand beside the others.
#[derive(Debug)]
pub(crate) struct BadRoute {
    pub(crate) template: String,
}

impl Routes {
    pub(crate) fn new(templates: &[String]) -> Result<Self, BadRoute> {
        let mut router = Router::new();
        for template in templates {
            // Every path of a request begins so; the router would take it, and never find it.
            if !template.starts_with('/') {
                return Err(BadRoute { template: template.clone() });
            }
            let procedure = Procedure::shared(template.as_str());
            router
                .insert(template.as_str(), procedure)
                .map_err(|_| BadRoute { template: template.clone() })?;
        }
        Ok(Self(Arc::new(router)))
    }

    /// The template that a path follows; `None` for a path that follows none.
    pub(crate) fn find(&self, path: &str) -> Option<Procedure> {
        self.0.at(path).ok().map(|found| found.value.clone())
    }
}

impl std::fmt::Debug for Routes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Routes").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_follows_the_most_special_template() {
        let templates = ["/pay/{id}", "/pay/all", "/files/{*rest}"].map(str::to_owned);
        let routes = Routes::new(&templates).unwrap();
        for (path, template) in [
            ("/pay/17", Some("/pay/{id}")),
            ("/pay/all", Some("/pay/all")),
            ("/files/a/b", Some("/files/{*rest}")),
            ("/pay", None),
            ("/pay/17/x", None),
            ("/", None),
        ] {
            let found = routes.find(path);
            assert_eq!(found.as_ref().map(Procedure::template), template, "{path}");
        }
        let twice = ["/pay/{id}", "/pay/{name}"].map(str::to_owned);
        assert_eq!(Routes::new(&twice).unwrap_err().template, "/pay/{name}");
        let no_path = ["pay/{id}".to_owned()];
        assert_eq!(Routes::new(&no_path).unwrap_err().template, "pay/{id}");
    }
}
