//! The services of a process: what all filters and workers share, and what outlives a new
//! configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use http::HeaderName;
use onus_agent::correlator::{Found, Token};
use onus_agent::{Agent, Inbound, Symbol, Timestamp};

use crate::callee;
use crate::config::{ConfigError, FilterConfig};
use crate::records::Places;
use crate::stats::{Counters, Export};

/// The services that filters of this process belong to.
#[derive(Default)]
pub struct Hub {
    services: Mutex<BTreeMap<String, Arc<Service>>>,
}

/// A service under one configuration.
pub struct Service {
    config: FilterConfig,
    agent: Arc<Agent>,
    /// The headers that identify a request where its token is lost.
    ids: Vec<HeaderName>,
    /// The service under all its configurations: filters of an older one stay for as long as their
    /// connections, and serve the same requests.
    versions: Arc<Versions>,
    export: Export,
    places: Places,
}

impl Hub {
    /// A hub without a service.
    #[must_use]
    pub const fn new() -> Self {
        Self { services: Mutex::new(BTreeMap::new()) }
    }

    /// The service that `config` names. The same configuration is the same service, with all that it
    /// has learnt. `seed` are random bits.
    ///
    /// # Errors
    ///
    /// What cannot be meant in `config`.
    pub fn service(
        &self,
        config: FilterConfig,
        seed: u64,
        now: Timestamp,
    ) -> Result<Arc<Service>, ConfigError> {
        let name = config.service.clone().ok_or(ConfigError::NoService)?;
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        let before = services.get(&name);
        if let Some(same) = before.filter(|before| before.config == config) {
            return Ok(same.clone());
        }
        let agent = Agent::new(&config.agent()?, seed, now)?;
        let versions = before.map(|before| before.versions.clone()).unwrap_or_default();
        let service = Arc::new(Service::new(config, agent, versions)?);
        services.insert(name, service.clone());
        Ok(service)
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Service {
    fn new(
        config: FilterConfig,
        agent: Arc<Agent>,
        versions: Arc<Versions>,
    ) -> Result<Self, ConfigError> {
        let ids = config.id_headers()?;
        let export = Export::new(&agent);
        versions.join(&agent);
        Ok(Self { config, agent, ids, versions, export, places: Places::default() })
    }

    /// The agent of the service.
    #[must_use]
    pub fn agent(&self) -> &Arc<Agent> {
        &self.agent
    }

    /// What the service was configured with.
    #[must_use]
    pub fn config(&self) -> &FilterConfig {
        &self.config
    }

    /// Whether the attempts at some callee are to be watched.
    pub(crate) fn has_policies(&self) -> bool {
        self.config.callees.values().any(|callee| callee.retry.is_some())
    }

    /// Whether heads of gRPC answers of this cluster may be held.
    pub(crate) fn may_hold(&self, cluster: &str) -> bool {
        let retry = self.config.callees.get(cluster).and_then(|callee| callee.retry.as_ref());
        retry.is_some_and(|retry| retry.hold_grpc)
    }

    /// Tells Envoy what was counted since the last time, a few seconds ago or more.
    pub fn export(&self, counters: &mut impl Counters, now: Timestamp) {
        self.export.follow(counters, now);
    }

    /// The places of this worker in the table of all, where they share no memory.
    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn ids(&self) -> &[HeaderName] {
        &self.ids
    }

    /// The callee that a cluster stands for.
    pub(crate) fn callee(&self, agent: &Agent, cluster: &str) -> Symbol {
        let named = self.config.callees.get(cluster).and_then(|callee| callee.name.as_deref());
        match named {
            Some(name) => agent.symbols().intern(name),
            None => agent.symbols().intern(&callee::of_cluster(cluster)),
        }
    }

    /// The request that a call with this token belongs to, and the agent that knows it if that is
    /// another than this service's.
    pub(crate) fn by_token(&self, token: Token) -> Option<(Option<Arc<Agent>>, Inbound)> {
        if let Some(inbound) = self.agent.inbound_of(token) {
            return Some((None, inbound));
        }
        let others = self.versions.others(&self.agent);
        others.into_iter().find_map(|agent| {
            let inbound = agent.inbound_of(token)?;
            Some((Some(agent), inbound))
        })
    }

    /// The request that a call with this fallback id belongs to, if that is certain, and the agent
    /// that knows it if that is another than this service's.
    pub(crate) fn by_id(&self, id: &[u8]) -> Option<(Option<Arc<Agent>>, Inbound)> {
        let own = (None, self.agent.inbound_by_id(id));
        let others = self.versions.others(&self.agent).into_iter().map(|agent| {
            let found = agent.inbound_by_id(id);
            (Some(agent), found)
        });
        let mut one = None;
        for (agent, found) in [own].into_iter().chain(others) {
            match found {
                Found::One(inbound) if one.is_none() => one = Some((agent, inbound)),
                Found::One(_) | Found::Ambiguous => return None,
                Found::Unknown => {}
            }
        }
        one
    }

    /// A call could be tied to no request: it may belong to one that came in by filters of another
    /// configuration.
    pub(crate) fn note_untied(&self) {
        for agent in self.versions.others(&self.agent) {
            agent.untied_elsewhere();
        }
    }
}

/// The agents of one service, each under a configuration, for as long as filters use them.
#[derive(Default)]
struct Versions(Mutex<Vec<Weak<Agent>>>);

impl Versions {
    fn join(&self, agent: &Arc<Agent>) {
        let mut agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        agents.retain(|agent| agent.strong_count() > 0);
        agents.push(Arc::downgrade(agent));
    }

    /// All but this one.
    fn others(&self, own: &Arc<Agent>) -> Vec<Arc<Agent>> {
        let agents = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let others = agents.iter().filter(|agent| agent.as_ptr() != Arc::as_ptr(own));
        others.filter_map(Weak::upgrade).collect()
    }
}
