//! Tower layers that stop retry storms by error ownership.
//!
//! A service that fails because one of its own calls failed passes the error on unclaimed, and
//! nobody above retries it: only the direct caller of the culprit does. The layers observe until
//! they are told to enforce, add no retry that was not configured, and let every request pass
//! whatever breaks in them. Decisions are `onus-core`'s, shared state is `onus-agent`'s; this crate
//! only carries them into `tower` services. Hosts that are not made of layers sit beside it.

mod answer;
mod clock;
#[cfg(feature = "hyper")]
pub mod hyper;
pub mod inbound;
mod onus;
pub mod outbound;
mod procedure;
pub mod replay;
#[cfg(feature = "reqwest")]
pub mod reqwest;
mod scope;
mod switch_file;
mod told;

pub use onus_agent::{
    Annotation, Arm, CallError, CallOutcome, CalleeClaim, ConfigError, EdgeClass, ErrorSet, Limits,
    Mode, Origin, PolicyError, RetryPolicy, Share, Source, Stop, SwitchError, Switches,
};

pub use crate::inbound::{InboundLayer, InboundService};
pub use crate::onus::{Onus, OnusBuilder};
pub use crate::outbound::{OutboundLayer, OutboundService};
pub use crate::procedure::{Procedure, RequestHead};
pub use crate::scope::{InboundScope, Scoped, spawn};
