//! What can be typed to see the demo.

use clap::{Args, ValueEnum};
use onus_demo::{Demo, Node, Protocol};

use super::Output;

/// Show a retry storm, and ownership stopping it, on real HTTP or gRPC traffic
///
/// Seven services A to G call each other in a chain on loopback, one of them fails, and a client
/// sends requests to A. The same traffic runs under five retry policies; the table shows how many
/// requests each service has handled, and below it what the formulas of the protocol expect.
#[derive(Debug, Args)]
#[command(after_long_help = "Example: what if C loses the context of its requests?\n\n    \
                             onus demo --requests 200 --context-loss C")]
pub(crate) struct DemoOptions {
    /// Requests that the client sends to A under each policy, 1 to 1000000
    #[arg(long, value_name = "N", default_value_t = Demo::default().requests)]
    pub(crate) requests: u64,

    /// The service that fails
    #[arg(long, value_name = "NODE", default_value_t = Demo::default().fail)]
    pub(crate) fail: Node,

    /// The share of its requests that this service fails, 0 to 1
    #[arg(long, value_name = "P", default_value_t = Demo::default().failure_rate)]
    pub(crate) failure_rate: f64,

    /// Fail only the requests with a bad key, which are this percentage of all, 1 to 100; a second
    /// table shows them
    #[arg(long, value_name = "PERCENT")]
    pub(crate) bad_keys: Option<u32>,

    /// The service that fails never answers instead, and every service above it times out first
    #[arg(long)]
    pub(crate) hang: bool,

    /// A service whose calls cannot be tied to the request that it serves
    #[arg(long, value_name = "NODE")]
    pub(crate) context_loss: Option<Node>,

    /// A service that does not retry its calls
    #[arg(long, value_name = "NODE")]
    pub(crate) no_retries: Option<Node>,

    /// A service without Onus: it sends no claims and retries its calls blindly
    #[arg(long, value_name = "NODE")]
    pub(crate) no_claims: Option<Node>,

    /// A service with an operator's shield: it tells its callers to retry nothing
    #[arg(long, value_name = "NODE")]
    pub(crate) shield: Option<Node>,

    /// Ownership only observes: claims are sent and read, and stop no retry
    #[arg(long)]
    pub(crate) observe: bool,

    /// Show what the memory of an embedded analysis changes instead: errors of a service beside
    /// failures that it survives, the radius of the chain, and the report of the incident
    #[arg(long, conflicts_with_all = ["fail", "failure_rate", "bad_keys", "hang", "context_loss", "no_retries", "no_claims", "shield", "observe"])]
    pub(crate) analysis: bool,

    /// Services that know nothing of Onus, with a sidecar process beside each
    #[arg(long, conflicts_with = "analysis")]
    pub(crate) sidecar: bool,

    /// How the services talk
    #[arg(long, value_name = "PROTOCOL", value_enum, default_value_t = Wire::Http1)]
    pub(crate) protocol: Wire,

    /// How the result is printed
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Output::Table)]
    pub(crate) output: Output,
}

impl DemoOptions {
    pub(crate) fn demo(&self) -> Demo {
        Demo {
            requests: self.requests,
            fail: self.fail,
            failure_rate: self.failure_rate,
            bad_keys: self.bad_keys,
            context_loss: self.context_loss,
            no_retries: self.no_retries,
            no_claims: self.no_claims,
            shield: self.shield,
            hang: self.hang,
            observe: self.observe,
            protocol: self.protocol.into(),
            ..Demo::default()
        }
    }
}

/// How the services talk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Wire {
    /// HTTP/1.1
    Http1,
    /// HTTP/2 without TLS
    Http2,
    /// gRPC, with claims in the block of its status
    Grpc,
}

impl From<Wire> for Protocol {
    fn from(wire: Wire) -> Self {
        match wire {
            Wire::Http1 => Self::Http1,
            Wire::Http2 => Self::Http2,
            Wire::Grpc => Self::Grpc,
        }
    }
}
