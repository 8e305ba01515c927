//! Which services there are, who calls whom, and what is wrong with them: data.

use std::time::Duration;

use onus::{Annotation, ErrorSet, Mode, RetryPolicy};

use crate::error::DemoError;
use crate::fault::Fault;
use crate::policy;
use crate::protocol::Protocol;
use crate::retry_layer::RetryLayer;

/// The services of a cluster; the first is the one that clients call.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// The services, in any order but for the first.
    pub services: Vec<ServiceConfig>,
    /// How they talk, and how clients talk to them.
    pub protocol: Protocol,
    /// What random failures are drawn from.
    pub seed: u64,
}

/// One service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceConfig {
    /// Its name, unique in the topology.
    pub name: String,
    /// Whom it calls for each request it handles.
    pub callees: Vec<CalleeConfig>,
    /// In which order it calls them.
    pub order: CallOrder,
    /// The mode of its Onus.
    pub mode: Mode,
    /// How well its calls can be tied to what it serves.
    pub coverage: Coverage,
    /// Whether an operator's shield is up.
    pub shield: bool,
    /// Whether it leaves a retry open where its callees met it with silence.
    pub silent_claims: bool,
    /// Whether a handler goes on when its caller has gone.
    pub detached: bool,
    /// Whether a gRPC answer's head is sent before its status is known: an error is then in the
    /// trailers, else in one block with the head.
    pub head_first: bool,
    /// What is wrong with the service itself; where several things happen to a request, all of
    /// them do.
    pub faults: Vec<Fault>,
}

/// One callee of a service.
#[derive(Clone, Debug, PartialEq)]
pub struct CalleeConfig {
    /// The callee's name.
    pub name: String,
    /// The most attempts of a call, the first included; 1 is no retry.
    pub attempts: u32,
    /// The errors that are retried.
    pub errors: ErrorSet,
    /// Retries per hundred calls, with no floor; `None` is no limit.
    pub budget_percent: Option<u32>,
    /// How long an attempt may take as the retry policy says, and as the callee is told where
    /// deadlines are propagated.
    pub per_try_timeout: Option<Duration>,
    /// How long the client below the outbound layer waits for a reply once it has a connection.
    /// It tells nobody.
    pub client_timeout: Option<Duration>,
    /// Who retries below the outbound layer. The service declares it.
    pub retry_layer: Option<RetryLayer>,
    /// Whether a request can be sent again.
    pub replayable: bool,
    /// How often the handler's own loop tries the call.
    pub tries: u32,
    /// How long the handler waits for an answer, all attempts together, before it drops the call.
    pub patience: Option<Duration>,
    /// Whether the service answers without this callee.
    pub tolerated: bool,
    /// What the service's author says about needing the callee.
    pub annotation: Option<Annotation>,
}

/// In which order a service calls its callees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOrder {
    /// One after the other; the first failure that is not tolerated is the last call.
    Sequential,
    /// All at once; the service waits for all of them.
    Parallel,
}

/// How well a service's calls can be tied to what it serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// They are.
    Correlated,
    /// The handler makes its calls in a plain `tokio::spawn`.
    ContextLost,
    /// There is no Onus: no claims are sent and none are read. Its retries go on blindly.
    NonCooperative,
}

impl Topology {
    /// A chain of healthy services without retries.
    pub fn chain<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut services: Vec<ServiceConfig> = Vec::new();
        for name in names {
            if let Some(caller) = services.last_mut() {
                caller.callees.push(CalleeConfig::new(name));
            }
            services.push(ServiceConfig::new(name));
        }
        Self { services, protocol: Protocol::default(), seed: 0 }
    }

    /// The service of this name.
    pub fn service_mut(&mut self, name: &str) -> Option<&mut ServiceConfig> {
        self.services.iter_mut().find(|service| service.name == name)
    }

    /// Finds names that lead nowhere.
    pub(crate) fn check(&self) -> Result<(), DemoError> {
        if self.services.is_empty() {
            return Err(DemoError::NoService);
        }
        for (index, service) in self.services.iter().enumerate() {
            if self.services[..index].iter().any(|earlier| earlier.name == service.name) {
                return Err(DemoError::TwoServices { name: service.name.clone() });
            }
            for callee in &service.callees {
                if !self.services.iter().any(|service| service.name == callee.name) {
                    let (caller, name) = (service.name.clone(), callee.name.clone());
                    return Err(DemoError::UnknownCallee { caller, name });
                }
            }
        }
        Ok(())
    }
}

impl ServiceConfig {
    /// A healthy service that enforces and calls nobody.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            callees: Vec::new(),
            order: CallOrder::Sequential,
            mode: Mode::ENFORCE,
            coverage: Coverage::Correlated,
            shield: false,
            silent_claims: false,
            detached: false,
            head_first: false,
            faults: Vec::new(),
        }
    }

    /// The mode of the Onus around its calls. Who has none still has a retry layer: that of an
    /// Onus which is off.
    pub(crate) fn mode_outbound(&self) -> Mode {
        match self.coverage {
            Coverage::Correlated | Coverage::ContextLost => self.mode,
            Coverage::NonCooperative => Mode::Off,
        }
    }
}

impl CalleeConfig {
    /// A callee that is called once and needed.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            attempts: 1,
            errors: ErrorSet::FAILURES,
            budget_percent: None,
            per_try_timeout: None,
            client_timeout: None,
            retry_layer: None,
            replayable: true,
            tries: 1,
            patience: None,
            tolerated: false,
            annotation: None,
        }
    }

    pub(crate) fn policy(&self) -> RetryPolicy {
        let mut policy = RetryPolicy::articles(self.attempts).errors(self.errors);
        policy = policy.backoff(policy::BACKOFF.0, policy::BACKOFF.1);
        policy = match self.budget_percent {
            Some(percent) => policy.budget_percent(percent).budget_min_per_second(0),
            None => policy.no_budget(),
        };
        if let Some(timeout) = self.per_try_timeout {
            policy = policy.per_try_timeout(timeout);
        }
        // Probes are retries that are made by chance: they would blur what is counted.
        policy.no_probes()
    }
}
