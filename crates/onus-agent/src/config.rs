//! What a service's agent is told at the start, as typed; [`Agent::new`](crate::Agent::new)
//! checks it.

use std::time::Duration;

use http::HeaderName;
use onus_core::{DeclaredRetries, EdgeClass, ErrorSet, Mode};
use onus_learn::Annotation;

use crate::policy::{PolicyError, RetryPolicy};
use crate::rules::CalleeRules;
use crate::wire;

/// What a service's agent is told at the start.
///
/// Everything but the service's name has a default: it observes, and makes no retry.
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The name of this service, `namespace/name` where namespaces exist: up to 128 printable
    /// ASCII characters.
    pub service: String,
    /// How far ownership reaches until somebody switches it.
    pub mode: Mode,
    /// Whether an error whose blamed calls met only silence stays claimed (`silent-claims`).
    pub silent_claims: bool,
    /// Whether the callers of this service are outside of its trust boundary: they are believed
    /// nothing, and their answers say nothing.
    pub untrusted_callers: bool,
    /// A second name under which claims are read and written, for a mesh that has one.
    pub claim_alias: Option<HeaderName>,
    /// The bounds of what the agent remembers.
    pub limits: Limits,
    callees: Vec<CalleeOption>,
}

/// The bounds of what an agent remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Edges kept apart (default 2,000); calls on further ones share one edge per callee,
    /// `__other__`.
    pub edges: usize,
    /// Procedures of this service kept apart (default 1,000); further ones share `__other__`.
    pub procedures: usize,
    /// Names of callees, methods and routes kept apart (default 10,000).
    pub names: usize,
    /// Live requests that can be found by token (default 65,536); further ones are context-lost.
    pub live_requests: usize,
    /// How long a cancelled request makes its ids ambiguous (default 10 s).
    pub linger: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            edges: 2_000,
            procedures: 1_000,
            names: 10_000,
            live_requests: 65_536,
            linger: Duration::from_secs(10),
        }
    }
}

/// A configuration that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The service's name cannot be sent in a claim.
    #[error("service name {0:?} is not 1 to 128 printable ASCII characters")]
    Service(String),
    /// A callee's name cannot be sent in a claim.
    #[error("callee name {0:?} is not 1 to 128 printable ASCII characters")]
    Callee(String),
    /// A policy has a value that is out of range.
    #[error("retry policy for {edge}: {source}")]
    Policy {
        /// The callee, and its procedure where one is named.
        edge: String,
        /// The value. It is part of the text, which many print without its causes.
        source: PolicyError,
    },
    /// The same thing is said twice, and one of them would be ignored.
    #[error("two {what} for {edge}; allowed is one")]
    Twice {
        /// What was said twice.
        what: &'static str,
        /// The callee, and its procedure where one is named.
        edge: String,
    },
    /// Two layers would both retry.
    #[error(
        "a retry policy for {callee}, whose retries are declared to be made elsewhere: remove \
         one, or allow it with `stacked`"
    )]
    Stacked {
        /// The callee.
        callee: String,
    },
    /// A declared layer below makes no sense.
    #[error("declared attempts for {callee} are {attempts}; allowed is 2 to 100")]
    Declared {
        /// The callee.
        callee: String,
        /// What was typed.
        attempts: u32,
    },
    /// A header that means something else already.
    #[error(
        "claim alias {0:?} is not a name of a mesh's own; allowed is one such as x-mesh-error-claim"
    )]
    Alias(HeaderName),
    /// More than all request trees cannot be enforced.
    #[error("enforce share is {percent} %; allowed is 0 to 100")]
    Share {
        /// What was typed.
        percent: u8,
    },
    /// A procedure that no call can have.
    #[error(
        "procedure {procedure:?} of {callee}; allowed is a method such as POST, a method and a \
         route template such as POST /charge, or a gRPC method such as /pkg.Service/Method"
    )]
    Procedure {
        /// The callee.
        callee: String,
        /// What was typed.
        procedure: String,
    },
    /// What a running agent cannot take over.
    #[error("another {what} needs a restart")]
    NeedsRestart {
        /// What is another one.
        what: &'static str,
    },
    /// A bound is too small to work with.
    #[error("limit {field} is {value}; allowed is {allowed}")]
    Limit {
        /// The bound.
        field: &'static str,
        /// What was typed.
        value: usize,
        /// What would be right.
        allowed: &'static str,
    },
}

/// One thing said about a callee.
#[derive(Clone, Debug)]
pub(crate) struct CalleeOption {
    pub(crate) callee: String,
    pub(crate) procedure: Option<String>,
    pub(crate) says: Says,
}

#[derive(Clone, Debug)]
pub(crate) enum Says {
    Retry(RetryPolicy),
    Declared(DeclaredRetries),
    Failures(ErrorSet),
    Annotation(Annotation),
    Override(EdgeClass),
    Untrusted,
    BrakeActs,
}

impl Says {
    fn what(&self) -> &'static str {
        match self {
            Self::Retry(_) => "retry policies",
            Self::Declared(_) => "declared retry layers",
            Self::Failures(_) => "sets of failures",
            Self::Annotation(_) => "annotations",
            Self::Override(_) => "class overrides",
            Self::Untrusted => "trust boundaries",
            Self::BrakeActs => "brakes",
        }
    }
}

impl AgentConfig {
    /// The configuration of `service` with every default.
    #[must_use]
    pub fn new(service: impl Into<String>) -> Self {
        Self {
            service: service.into(),
            mode: Mode::default(),
            silent_claims: false,
            untrusted_callers: false,
            claim_alias: None,
            limits: Limits::default(),
            callees: Vec::new(),
        }
    }

    /// Whether a service may have this name, which fits into a claim as it is: 1 to 128 printable
    /// ASCII characters.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        (1..=128).contains(&name.len()) && name.bytes().all(|byte| (b' '..=b'~').contains(&byte))
    }

    /// Retries calls to `callee` by this policy.
    pub fn retry(&mut self, callee: impl Into<String>, policy: RetryPolicy) {
        self.say(callee, None, Says::Retry(policy));
    }

    /// Retries calls of one procedure of `callee` by this policy, instead of the callee's own:
    /// `POST /charge`, `POST`, or `/pkg.Service/Method`. Naming an unsafe method allows it.
    pub fn retry_procedure(
        &mut self,
        callee: impl Into<String>,
        procedure: impl Into<String>,
        policy: RetryPolicy,
    ) {
        self.say(callee, Some(procedure.into()), Says::Retry(policy));
    }

    /// Declares that a layer below this agent makes up to `attempts` attempts at `callee` on these
    /// errors. Onus then adds no retry there unless a policy is `stacked`.
    pub fn declared_retries(&mut self, callee: impl Into<String>, attempts: u32, errors: ErrorSet) {
        self.say(callee, None, Says::Declared(DeclaredRetries { attempts, errors }));
    }

    /// Counts these answers of `callee` as failures instead of the protocol's.
    pub fn failures(&mut self, callee: impl Into<String>, errors: ErrorSet) {
        self.say(callee, None, Says::Failures(errors));
    }

    /// Says in code that this service needs `callee`, or does without.
    pub fn annotate(&mut self, callee: impl Into<String>, annotation: Annotation) {
        self.say(callee, None, Says::Annotation(annotation));
    }

    /// The operator's word on the class of all edges to `callee`; nothing learned changes it, and
    /// only an override in the analysis outranks it.
    pub fn override_class(&mut self, callee: impl Into<String>, class: EdgeClass) {
        self.say(callee, None, Says::Override(class));
    }

    /// Puts `callee` outside of the trust boundary: its claims are not read, and it gets no
    /// `onus-*` header.
    pub fn untrusted(&mut self, callee: impl Into<String>) {
        self.say(callee, None, Says::Untrusted);
    }

    /// Lets the brake halve the enforce share of edges to `callee` where probes show that
    /// suppression is costly.
    pub fn brake_acts(&mut self, callee: impl Into<String>) {
        self.say(callee, None, Says::BrakeActs);
    }

    fn say(&mut self, callee: impl Into<String>, procedure: Option<String>, says: Says) {
        self.callees.push(CalleeOption { callee: callee.into(), procedure, says });
    }

    /// Checks everything, as an agent does that is made of it.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, with what would be right.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.check().map(drop)
    }

    /// Checks everything and sorts it by callee.
    pub(crate) fn check(&self) -> Result<Vec<CalleeRules>, ConfigError> {
        if !Self::is_name(&self.service) {
            return Err(ConfigError::Service(self.service.clone()));
        }
        if let Some(alias) = &self.claim_alias
            && !wire::may_be_alias(alias)
        {
            return Err(ConfigError::Alias(alias.clone()));
        }
        self.limits.check()?;
        let mut callees: Vec<CalleeRules> = Vec::new();
        for (index, option) in self.callees.iter().enumerate() {
            self.refuse_second(index, option)?;
            option.refuse_unmeant_procedure()?;
            let rules = match callees.iter_mut().find(|rules| rules.callee == option.callee) {
                Some(rules) => rules,
                None if Self::is_name(&option.callee) => {
                    callees.push(CalleeRules::new(&option.callee));
                    let last = callees.len() - 1;
                    &mut callees[last]
                }
                None => return Err(ConfigError::Callee(option.callee.clone())),
            };
            rules.apply(option)?;
        }
        for rules in &callees {
            rules.refuse_unmeant_stack()?;
        }
        Ok(callees)
    }

    fn refuse_second(&self, index: usize, option: &CalleeOption) -> Result<(), ConfigError> {
        let same = |earlier: &&CalleeOption| {
            earlier.callee == option.callee
                && earlier.procedure == option.procedure
                && earlier.says.what() == option.says.what()
        };
        match self.callees[..index].iter().find(same) {
            None => Ok(()),
            Some(_) => {
                Err(ConfigError::Twice { what: option.says.what(), edge: option.edge_text() })
            }
        }
    }
}

impl Limits {
    fn check(&self) -> Result<(), ConfigError> {
        for (field, value) in [
            ("edges", self.edges),
            ("procedures", self.procedures),
            ("names", self.names),
            ("live requests", self.live_requests),
        ] {
            if !(16..=1 << 20).contains(&value) {
                let allowed = "16 to 1048576";
                return Err(ConfigError::Limit { field, value, allowed });
            }
        }
        Ok(())
    }
}

impl CalleeOption {
    fn refuse_unmeant_procedure(&self) -> Result<(), ConfigError> {
        match &self.procedure {
            Some(procedure) if !is_procedure(procedure) => {
                let (callee, procedure) = (self.callee.clone(), procedure.clone());
                Err(ConfigError::Procedure { callee, procedure })
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(crate) fn edge_text(&self) -> String {
        match &self.procedure {
            Some(procedure) => format!("{} {procedure}", self.callee),
            None => self.callee.clone(),
        }
    }
}

/// Whether `text` has the form of a procedure: a method, a method and a route template, or a gRPC
/// method.
fn is_procedure(text: &str) -> bool {
    let (method, route) = match text.split_once(' ') {
        Some((method, route)) => (method, Some(route)),
        None if text.starts_with('/') => {
            let parts: Vec<&str> = text.split('/').collect();
            return matches!(parts[..], ["", service, method] if !service.is_empty() && !method.is_empty());
        }
        None => (text, None),
    };
    // Methods are case-sensitive, and all that are in use are upper-case.
    let is_method =
        !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    is_method && route.is_none_or(|route| route.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(configure: impl FnOnce(&mut AgentConfig)) -> Result<Vec<CalleeRules>, String> {
        let mut config = AgentConfig::new("checkout");
        configure(&mut config);
        config.check().map_err(|error| error.to_string())
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        let two = || RetryPolicy::attempts(2);
        for (result, message) in [
            (
                check(|c| c.service = "no\nname".into()),
                "service name \"no\\nname\" is not 1 to 128 printable ASCII characters",
            ),
            (
                check(|c| c.retry("", two())),
                "callee name \"\" is not 1 to 128 printable ASCII characters",
            ),
            (
                check(|c| c.retry("b", RetryPolicy::attempts(0))),
                "retry policy for b: attempts is 0; allowed is 1 to 10",
            ),
            (
                check(|c| {
                    c.retry("b", two());
                    c.retry("b", RetryPolicy::attempts(3));
                }),
                "two retry policies for b; allowed is one",
            ),
            (
                check(|c| {
                    c.retry_procedure("b", "POST /x", two());
                    c.retry_procedure("b", "POST /x", two());
                }),
                "two retry policies for b POST /x; allowed is one",
            ),
            (
                check(|c| {
                    c.declared_retries("b", 3, ErrorSet::failures());
                    c.retry("b", two());
                }),
                "a retry policy for b, whose retries are declared to be made elsewhere: remove \
                 one, or allow it with `stacked`",
            ),
            (
                check(|c| c.declared_retries("b", 1, ErrorSet::failures())),
                "declared attempts for b are 1; allowed is 2 to 100",
            ),
            (check(|c| c.limits.edges = 0), "limit edges is 0; allowed is 16 to 1048576"),
        ] {
            assert_eq!(result.unwrap_err(), message);
        }
    }

    #[test]
    fn an_alias_takes_no_header_away_from_others() {
        for (name, allowed) in [
            ("x-uber-error-claim", true),
            ("x-mesh-error-claim", true),
            ("x-request-id", false),
            ("x-forwarded-for", false),
            ("content-length", false),
            ("retry-after", false),
            ("onus-mark", false),
            ("onus-claim", false),
            ("grpc-status", false),
            ("x-envoy-ratelimited", false),
            ("traceparent", false),
        ] {
            let result = check(|c| c.claim_alias = Some(HeaderName::from_static(name)));
            assert_eq!(result.is_ok(), allowed, "{name}");
        }
    }

    #[test]
    fn a_procedure_that_no_call_can_have_is_refused() {
        for (procedure, meant) in [
            ("POST", true),
            ("POST /charge", true),
            ("POST /charge/{id}", true),
            ("M-SEARCH", true),
            ("/pkg.Service/Method", true),
            ("post", false),
            ("/charge", false),
            ("POST charge", false),
            ("POST  /charge", false),
            ("", false),
            (" /charge", false),
        ] {
            let result = check(|c| c.retry_procedure("b", procedure, RetryPolicy::attempts(2)));
            assert_eq!(result.is_ok(), meant, "{procedure:?}");
        }
        let error = check(|c| c.retry_procedure("b", "post", RetryPolicy::attempts(2)));
        let says = "procedure \"post\" of b; allowed is a method such as POST, a method and a route \
                    template such as POST /charge, or a gRPC method such as /pkg.Service/Method";
        assert_eq!(error.unwrap_err(), says);
    }

    #[test]
    fn a_procedure_has_its_own_retries_and_the_callees_boundary() {
        let rules = check(|c| {
            c.retry("b", RetryPolicy::attempts(2));
            c.retry_procedure("b", "POST /charge", RetryPolicy::attempts(3));
            c.retry_procedure("b", "PUT", RetryPolicy::attempts(1));
            c.untrusted("b");
        })
        .unwrap();
        let retry = |procedure| {
            let retry = rules[0].of(procedure).policy.retry?;
            Some((retry.attempts(), retry.unsafe_methods))
        };
        for (procedure, expected) in [
            ("GET", Some((2, false))),
            ("POST", Some((2, false))),
            ("GET /charge", Some((2, false))),
            ("POST /charge", Some((3, true))),
            ("PUT /x", None),
            ("/pkg.Service/Method", Some((2, false))),
        ] {
            assert_eq!(retry(procedure), expected, "{procedure}");
            assert!(!rules[0].of(procedure).policy.trusted, "{procedure}");
        }
    }

    #[test]
    fn a_policy_may_be_stacked_on_declared_retries() {
        let rules = check(|c| {
            c.declared_retries("b", 3, ErrorSet::failures());
            c.retry("b", RetryPolicy::attempts(2).stacked());
        })
        .unwrap();
        assert!(rules[0].all.policy.retry.is_some() && rules[0].all.policy.declared.is_some());
    }
}
