//! Which names of different sources are one service.

use std::collections::HashMap;

use onus_retry_config::Service;

/// The services, each with a number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nodes {
    services: Vec<Service>,
    by_name: HashMap<String, Vec<usize>>,
    /// Names without a namespace that several services have.
    pub(crate) ambiguous: Vec<Service>,
}

impl Nodes {
    /// The number of a service, which is added unless it is there. A name without a namespace is
    /// the one service that is called so, and one by itself where several are.
    pub(crate) fn add(&mut self, service: &Service) -> usize {
        if let Some(known) = self.find(service) {
            return known;
        }
        let of_name = self.by_name.entry(service.name.clone()).or_default();
        if service.namespace.is_none() && !of_name.is_empty() {
            self.ambiguous.push(service.clone());
        }
        of_name.push(self.services.len());
        self.services.push(service.clone());
        self.services.len() - 1
    }

    fn find(&self, service: &Service) -> Option<usize> {
        let of_name = self.by_name.get(&service.name)?;
        let exactly = of_name.iter().find(|&&number| self.services[number] == *service);
        if let Some(&number) = exactly {
            return Some(number);
        }
        match (of_name.as_slice(), &service.namespace) {
            ([only], None) => Some(*only),
            ([only], Some(_)) if self.services[*only].namespace.is_none() => Some(*only),
            _ => None,
        }
    }

    /// What a trace calls a service: its name, or name and namespace where there is such a service.
    pub(crate) fn add_traced(&mut self, name: &str) -> usize {
        let with_namespace = Service::of_host(name, None);
        match self.find(&with_namespace) {
            Some(known) => known,
            None => self.add(&Service::new(name, None)),
        }
    }

    pub(crate) fn service(&self, number: usize) -> &Service {
        &self.services[number]
    }

    pub(crate) fn len(&self) -> usize {
        self.services.len()
    }

    /// What people read: the namespace only where the name alone means several.
    pub(crate) fn name(&self, number: usize) -> String {
        let service = &self.services[number];
        match self.by_name.get(&service.name).map_or(0, Vec::len) {
            0 | 1 => service.name.clone(),
            _ => service.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_one_service() {
        let mut nodes = Nodes::default();
        let shop = nodes.add(&Service::new("cart", Some("shop")));
        assert_eq!(nodes.add(&Service::new("cart", None)), shop);
        assert_eq!(nodes.add_traced("cart"), shop);
        assert_eq!(nodes.add_traced("cart.shop"), shop);
        assert_eq!(nodes.name(shop), "cart");
        let other = nodes.add(&Service::new("cart", Some("outlet")));
        assert_ne!(other, shop);
        assert_eq!(
            (nodes.name(shop), nodes.name(other)),
            ("cart.shop".into(), "cart.outlet".into())
        );
        assert_eq!(nodes.add_traced("cart.outlet"), other);
        // Whose it is nobody says.
        let unclear = nodes.add_traced("cart");
        assert!(![shop, other].contains(&unclear));
        assert_eq!(nodes.ambiguous, [Service::new("cart", None)]);
        // A host that looks like a namespace is a name by itself.
        let host = nodes.add_traced("example.com");
        assert_eq!(nodes.name(host), "example.com");
    }
}
