//! Small services on real sockets that show a retry storm, and Onus stopping it.
//!
//! A [`Topology`] says who calls whom, who retries and what is broken; a [`Cluster`] runs it on
//! loopback and tells how many requests each service has handled. A [`Demo`] is the chain A to G
//! of `onus demo`, with what is expected of it. The services are ordinary ones with the layers of
//! `onus` around them: nothing in here decides anything about retries.

mod beside;
mod callee;
mod carried;
mod client;
mod cluster;
mod demo;
mod error;
mod expected;
mod fault;
mod key;
mod load;
mod node;
mod pace;
mod policy;
mod protocol;
mod relay;
mod retry_layer;
mod server;
mod service;
mod settled;
mod sidecars;
mod topology;

pub use crate::cluster::Cluster;
pub use crate::demo::{BadKeys, Demo, Run};
pub use crate::error::{DemoError, Misuse};
pub use crate::fault::{Fault, What, When};
pub use crate::load::{Load, Report, RetryPermission, SeenError};
pub use crate::node::{Node, PerNode, UnknownNode};
pub use crate::policy::Policy;
pub use crate::protocol::{Protocol, Status};
pub use crate::retry_layer::RetryLayer;
pub use crate::sidecars::{Beside, Sidecar, Sidecars};
pub use crate::topology::{CallOrder, CalleeConfig, Coverage, ServiceConfig, Topology};
