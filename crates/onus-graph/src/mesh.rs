//! A graph whose services are known by their names.

use std::collections::HashMap;

use crate::graph::{Coverage, Edge, Graph, Service, ServiceId};

/// A graph, and its services by name.
#[derive(Clone, Debug, Default)]
pub struct Mesh {
    graph: Graph,
    ids: HashMap<String, ServiceId>,
}

impl Mesh {
    /// An empty mesh.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The service with this name, which is added unless it is there.
    pub fn add_service(&mut self, name: &str) -> ServiceId {
        if let Some(id) = self.find(name) {
            return id;
        }
        let id = self.graph.add_service(Service::new(name));
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// Adds the calls of one service to another, and the services unless they are there.
    pub fn add_edge(&mut self, caller: &str, callee: &str, edge: Edge) {
        let (caller, callee) = (self.add_service(caller), self.add_service(callee));
        self.graph.add_edge(caller, callee, edge);
    }

    /// The service with this name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<ServiceId> {
        self.ids.get(name).copied()
    }

    /// Says how far ownership reaches in a service.
    pub fn cover(&mut self, service: ServiceId, coverage: Coverage) {
        self.graph.cover(service, coverage);
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The name of a service of this mesh.
    ///
    /// # Panics
    ///
    /// If it is of another graph.
    #[must_use]
    pub fn name(&self, service: ServiceId) -> &str {
        &self.graph.service(service).expect("it is of this graph").name
    }
}
