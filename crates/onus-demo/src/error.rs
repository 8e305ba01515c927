//! What can go wrong before the first request is sent.

use std::io;

use onus::ConfigError;

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
    /// The number of requests is out of range.
    #[error("send {requests} requests; allowed is 1 to {max}", max = crate::Demo::REQUESTS_MAX)]
    Requests {
        /// What was asked for.
        requests: u64,
    },
    /// The failure rate is no share.
    #[error("fail a share of {rate} of the requests; allowed is 0 to 1")]
    FailureRate {
        /// What was asked for.
        rate: f64,
    },
    /// Two wishes exclude each other, or one has no effect.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// Onus does not take what it was told.
    #[error("configure the service {service:?}")]
    Config {
        /// The service.
        service: String,
        /// What is wrong.
        #[source]
        source: ConfigError,
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

/// Wishes that exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    /// Somebody who never answers fails at no rate.
    #[error(
        "combine a hanging {0} with a failure rate below 1: it answers no request; \
         leave out one of the two"
    )]
    HangAtRate(Node),
    /// A shield is an answer.
    #[error(
        "combine a hanging {0} with a shield: the caller's timeout passes before an answer \
         could carry one; leave out one of the two"
    )]
    HangBehindShield(Node),
    /// A shield is Onus.
    #[error("put a shield on {0} and take Onus out of it; leave out one of the two")]
    ShieldWithoutOnus(Node),
    /// Only Onus can lose the context.
    #[error("lose the context in {0} and take Onus out of it; leave out one of the two")]
    ContextWithoutOnus(Node),
    /// The last service calls nobody.
    #[error("change the calls of {0}, which makes none; choose one of A to F")]
    NoCalls(Node),
}
