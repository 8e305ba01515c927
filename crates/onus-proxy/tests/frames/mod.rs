//! What peers do on the wire, and what becomes of it through a proxy.

mod ambiguous;
mod context;
mod defaults;
mod forwarding;
mod given_up;
mod instances;
mod interim;
mod loops;
mod messages;
mod resends;
mod ties;
mod tunnels;
mod unreachable;
