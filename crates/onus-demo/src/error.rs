//! What can go wrong before the first request is sent.

use std::io;

use onus::ConfigError;

use crate::demo::Demo;
use crate::node::Node;

/// Why a topology or a demo cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// There is nobody to call.
    #[error("start a topology without services")]
    NoService,
    /// A name stands for two services.
    #[error("start two services with the name {name:?}")]
    TwoServices {
        /// The name.
        name: String,
    },
    /// A name stands for no service.
    #[error("find the service {name:?} that {caller:?} calls")]
    UnknownCallee {
        /// Who calls it.
        caller: String,
        /// The name.
        name: String,
    },
    /// What is asked for makes no sense.
    #[error(transparent)]
    Misuse(#[from] Misuse),
    /// Onus does not take what it was told.
    #[error("configure the service {service:?}")]
    Config {
        /// The service.
        service: String,
        /// What is wrong.
        #[source]
        source: ConfigError,
    },
    /// A sidecar has to know where those are that its service calls.
    #[error("start sidecars beside services that call each other in a circle through {service:?}")]
    Circle {
        /// One of them.
        service: String,
    },
    /// A sidecar does not start.
    #[error("start the sidecar of {service:?}")]
    Sidecar {
        /// The service.
        service: String,
        /// What is wrong.
        #[source]
        source: io::Error,
    },
    /// A socket cannot be had.
    #[error("listen on loopback")]
    Listen(#[source] io::Error),
    /// A service does not tell its count.
    #[error("read the count of {service:?}: {problem}")]
    Count {
        /// The service.
        service: String,
        /// What came instead.
        problem: String,
    },
}

/// What cannot be shown, with what could.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Misuse {
    /// The number of requests is out of range.
    #[error("the number of requests is {0}; allowed is 1 to {max}", max = Demo::REQUESTS_MAX)]
    Requests(u64),
    /// The failure rate is no share.
    #[error("the failure rate is {0}; allowed is 0 to 1")]
    FailureRate(f64),
    /// The percentage of bad keys is out of range.
    #[error("the percentage of bad keys is {0}; allowed is 1 to {max}", max = Demo::BAD_KEYS_MAX)]
    BadKeys(u32),
    /// One fault at a time has a formula.
    #[error("for a {0} that hangs or fails at a rate no key is bad; leave one of them out")]
    BadKeysBeside(Node),
    /// Somebody who never answers fails at no rate.
    #[error("a hanging {0} answers no request, whatever the failure rate; leave one of them out")]
    HangAtRate(Node),
    /// A shield is an answer.
    #[error(
        "a shield is told in answers, and above a hanging {0} none comes in time; leave one of them out"
    )]
    HangBehindShield(Node),
    /// A shield is Onus.
    #[error(
        "a shield on {0} needs Onus there; leave out the shield, or choose another service without claims"
    )]
    ShieldWithoutOnus(Node),
    /// Only Onus can lose the context.
    #[error("{0} has no context to lose without Onus; choose two services")]
    ContextWithoutOnus(Node),
    /// The last service calls nobody.
    #[error("{0} calls nobody, so its calls cannot be changed; allowed is A to F")]
    NoCalls(Node),
}
