//! Onus in one service: the handle that layers are made from, and its builder.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::HeaderName;
use onus_agent::{
    Agent, AgentConfig, Annotation, ConfigError, EdgeClass, EdgeView, ErrorSet, Limits, Mode,
    RetryPolicy, Share, Source, SwitchError, SwitchFile, Switches,
};

use crate::clock::Clock;
use crate::inbound::InboundLayer;
use crate::outbound::Callee;
use crate::outbound::OutboundLayer;
use crate::procedure::RequestHead;
use crate::replay::{ReplayLimits, empty_digest};
use crate::switch_file;

/// Onus in one service. Cheap to clone: all clones share budgets, classes and counters.
#[derive(Clone)]
pub struct Onus(Arc<Shared>);

struct Shared {
    agent: Arc<Agent>,
    clock: Clock,
    replay: ReplayLimits,
    /// The digest of a body without data, which most requests have.
    empty_body: u64,
    /// What administrators have said.
    #[cfg(feature = "report")]
    ordered: std::sync::Mutex<crate::report::Ordered>,
}

impl Onus {
    /// Starts to configure Onus for the service of this name, `namespace/name` where namespaces
    /// exist.
    pub fn builder(service: impl Into<String>) -> OnusBuilder {
        OnusBuilder {
            config: AgentConfig::new(service),
            mistake: None,
            replay: (ReplayLimits::PER_REQUEST_DEFAULT, ReplayLimits::TOTAL_DEFAULT),
        }
    }

    /// The layer around what this service serves; it belongs outermost.
    #[must_use]
    pub fn inbound(&self) -> InboundLayer {
        InboundLayer::new(self.clone())
    }

    /// The layer around a client of `callee`.
    #[must_use]
    pub fn outbound(&self, callee: &str) -> OutboundLayer {
        let callee = self.0.agent.symbols().intern(callee);
        OutboundLayer::new(self.clone(), Callee::Always(callee))
    }

    /// The layer around a client of many services: `tell` names the callee of each request.
    ///
    /// Names are kept for good, up to a limit: never make them from ids or addresses.
    /// Where `tell` panics the callee is `__other__`.
    #[must_use]
    pub fn outbound_by(
        &self,
        tell: impl Fn(&RequestHead<'_>) -> Cow<'static, str> + Send + Sync + 'static,
    ) -> OutboundLayer {
        OutboundLayer::new(self.clone(), Callee::By(Arc::new(tell)))
    }

    /// Sets mode and shield at run time. What `source` said before is forgotten; a file wins over
    /// an admin, an admin over the analysis.
    pub fn switch(&self, source: Source, switches: &Switches) {
        self.0.agent.switch(source, switches, self.0.clock.now());
    }

    /// Hands over the watched switch file, each time it changes; for a service that reads it
    /// itself, instead of [`Self::watch_switch_file`].
    ///
    /// # Errors
    ///
    /// The first line that cannot be meant; what was in force stays in force.
    pub fn switch_file(&self, file: SwitchFile<'_>) -> Result<(), SwitchError> {
        self.0.agent.switch_file(file, self.0.clock.now())
    }

    /// Follows the switch file at `path`, about once a second, until the last handle of this
    /// service is gone. To be spawned on a tokio runtime:
    ///
    /// ```no_run
    /// # let onus = onus::Onus::builder("checkout").build().unwrap();
    /// tokio::spawn(onus.watch_switch_file("/etc/onus/switch"));
    /// ```
    ///
    /// A file that cannot be read or meant is named in the log, and what was in force stays in
    /// force. No file says nothing, like an empty one.
    pub fn watch_switch_file(
        &self,
        path: impl Into<PathBuf>,
    ) -> impl Future<Output = ()> + Send + 'static {
        switch_file::watch(self.downgrade(), path.into())
    }

    /// The mode in force.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.agent.mode()
    }

    /// Registers this service's metrics.
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        let clock = self.0.clock;
        self.0.agent.register_metrics(registry, move || clock.now());
    }

    /// Takes another configuration over while requests go on: policies, declared retries, classes said
    /// by people and the mode. Budgets, learned classes, counters and the layers themselves last; a
    /// request that is under way keeps to what was in force when it called.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, or that needs a restart: the service's name, silent
    /// claims, trust in callers, the claim alias and the bounds. Nothing is changed then.
    pub fn reconfigure(&self, builder: OnusBuilder) -> Result<(), ConfigError> {
        if let Some(mistake) = builder.mistake {
            return Err(mistake);
        }
        let (per_request, total) = builder.replay;
        let same = self.0.replay.per_request() == per_request && self.0.replay.total() == total;
        if !same {
            return Err(ConfigError::NeedsRestart { what: "bound of replay memory" });
        }
        self.0.agent.reconfigure(&builder.config, self.0.clock.now())
    }

    /// All edges that this service has used, for people.
    #[must_use]
    pub fn edges(&self) -> Vec<EdgeView> {
        self.0.agent.edge_views(self.0.clock.now())
    }

    /// The agent behind the layers, for hosts that are not made of them.
    #[must_use]
    pub fn agent(&self) -> &Arc<Agent> {
        &self.0.agent
    }

    /// The memory for request bodies that may have to be sent again.
    #[must_use]
    pub fn replay_limits(&self) -> &ReplayLimits {
        &self.0.replay
    }

    pub(crate) fn empty_body(&self) -> u64 {
        self.0.empty_body
    }

    /// A handle that does not keep the service's state alive.
    pub(crate) fn downgrade(&self) -> WeakOnus {
        WeakOnus(Arc::downgrade(&self.0))
    }

    pub(crate) fn clock(&self) -> Clock {
        self.0.clock
    }

    /// What administrators have said.
    #[cfg(feature = "report")]
    pub(crate) fn ordered(&self) -> std::sync::MutexGuard<'_, crate::report::Ordered> {
        self.0.ordered.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A handle that does not keep the service's state alive.
#[derive(Clone)]
pub(crate) struct WeakOnus(Weak<Shared>);

impl WeakOnus {
    pub(crate) fn upgrade(&self) -> Option<Onus> {
        self.0.upgrade().map(Onus)
    }
}

impl fmt::Debug for Onus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Onus")
            .field("service", self.0.agent.service())
            .field("mode", &self.mode())
            .finish_non_exhaustive()
    }
}

/// Configures [`Onus`]; see [`Onus::builder`].
///
/// Nothing is retried and nothing suppressed unless it is said here: the default is to observe.
#[derive(Clone, Debug)]
#[must_use]
pub struct OnusBuilder {
    config: AgentConfig,
    /// The first value that could not be taken over at all.
    mistake: Option<ConfigError>,
    replay: (usize, usize),
}

impl OnusBuilder {
    /// Retries calls to `callee` by this policy: safe HTTP methods and all gRPC methods, unless
    /// the policy says more.
    pub fn retry(mut self, callee: impl Into<String>, policy: RetryPolicy) -> Self {
        self.config.retry(callee, policy);
        self
    }

    /// Retries calls of one procedure of `callee` by this policy, instead of the callee's own:
    /// `POST /charge`, `POST`, or `/pkg.Service/Method`. Naming an unsafe method allows it.
    pub fn retry_procedure(
        mut self,
        callee: impl Into<String>,
        procedure: impl Into<String>,
        policy: RetryPolicy,
    ) -> Self {
        self.config.retry_procedure(callee, procedure, policy);
        self
    }

    /// Lets claims decide; without this, Onus observes.
    pub fn enforce(self) -> Self {
        self.mode(Mode::ENFORCE)
    }

    /// Lets claims decide for `percent` of the request trees, 0 to 100; the others are observed.
    pub fn enforce_percent(mut self, percent: u8) -> Self {
        match Share::percent(percent) {
            Some(share) => self.mode(Mode::Enforce(share)),
            None => {
                self.mistake.get_or_insert(ConfigError::Share { percent });
                self
            }
        }
    }

    /// The mode until somebody switches it.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.config.mode = mode;
        self
    }

    /// Keeps an error claimed whose blamed calls met only silence, so that the caller may try
    /// another instance of this service.
    pub fn silent_claims(mut self) -> Self {
        self.config.silent_claims = true;
        self
    }

    /// This service cannot answer without `callee`.
    pub fn required(mut self, callee: impl Into<String>) -> Self {
        self.config.annotate(callee, Annotation::Required);
        self
    }

    /// This service answers without `callee`.
    pub fn optional(mut self, callee: impl Into<String>) -> Self {
        self.config.annotate(callee, Annotation::Optional);
        self
    }

    /// The operator's word on the class of all edges to `callee`.
    pub fn override_class(mut self, callee: impl Into<String>, class: EdgeClass) -> Self {
        self.config.override_class(callee, class);
        self
    }

    /// Declares that a layer below Onus makes up to `attempts` attempts at `callee` on `errors`:
    /// Envoy, a gRPC library, an SDK. Onus then adds no retry unless a policy is
    /// [`stacked`](RetryPolicy::stacked), and counts the attempts.
    pub fn declared_retries(
        mut self,
        callee: impl Into<String>,
        attempts: u32,
        errors: ErrorSet,
    ) -> Self {
        self.config.declared_retries(callee, attempts, errors);
        self
    }

    /// Counts these answers of `callee` as failures instead of the protocol's.
    pub fn failures(mut self, callee: impl Into<String>, errors: ErrorSet) -> Self {
        self.config.failures(callee, errors);
        self
    }

    /// Puts `callee` outside of the trust boundary.
    pub fn untrusted(mut self, callee: impl Into<String>) -> Self {
        self.config.untrusted(callee);
        self
    }

    /// Puts all callers of this service outside of the trust boundary, as at a public edge: nothing
    /// that they say of ownership is read, and they get no claim.
    pub fn untrusted_callers(mut self) -> Self {
        self.config.untrusted_callers = true;
        self
    }

    /// Lets the brake halve the enforce share of edges to `callee` where probes show that
    /// suppression is costly.
    pub fn brake_acts(mut self, callee: impl Into<String>) -> Self {
        self.config.brake_acts(callee);
        self
    }

    /// A second header name under which claims are read and written.
    pub fn claim_alias(mut self, name: HeaderName) -> Self {
        self.config.claim_alias = Some(name);
        self
    }

    /// The bounds of what is remembered.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.config.limits = limits;
        self
    }

    /// How long a cancelled request makes the ids of its trace ambiguous.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.config.limits.linger = linger;
        self
    }

    /// The most bytes of a request body that are kept to send it again: of one request (default
    /// 64 KiB) and of all requests together (default 64 MiB).
    pub fn replay_limits(mut self, per_request: usize, total: usize) -> Self {
        self.replay = (per_request, total);
        self
    }

    /// Checks everything as [`build`](Self::build) does, and starts and logs nothing.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, with what would be right.
    pub fn validate(self) -> Result<(), ConfigError> {
        self.mistake.map_or_else(|| self.config.validate(), Err)
    }

    /// Checks everything and starts; the first log line says what this service will do.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, with what would be right.
    pub fn build(self) -> Result<Onus, ConfigError> {
        if let Some(mistake) = self.mistake {
            return Err(mistake);
        }
        let clock = Clock::start();
        let agent = Agent::new(&self.config, fastrand::u64(..), clock.now())?;
        let (per_request, total) = self.replay;
        let replay = ReplayLimits::new(per_request, total);
        Ok(Onus(Arc::new(Shared {
            agent,
            clock,
            replay,
            empty_body: empty_digest(),
            #[cfg(feature = "report")]
            ordered: std::sync::Mutex::default(),
        })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_above_all_is_refused() {
        for (percent, ok) in [(0, true), (100, true), (101, false), (250, false)] {
            let built = Onus::builder("checkout").enforce_percent(percent).build();
            assert_eq!(built.is_ok(), ok, "{percent} %");
        }
        let error = Onus::builder("checkout").enforce_percent(250).build().unwrap_err();
        assert_eq!(error.to_string(), "enforce share is 250 %; allowed is 0 to 100");
    }
}
