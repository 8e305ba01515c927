//! What peers do on the wire, and what becomes of it through a proxy.

mod ambiguous;
mod context;
mod forwarding;
mod instances;
mod messages;
mod resends;
mod tunnels;
mod unreachable;
