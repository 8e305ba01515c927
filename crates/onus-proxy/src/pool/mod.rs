//! Connections to a callee: bounded, used again, and chosen for each attempt.
//!
//! The pool is a service below the outbound layer. It makes no retry. A request whose connection
//! turned out to be closed before anything of it was written, or whose stream the callee says it has
//! not worked on, is sent once more: that is below the protocol of ownership, and no attempt.

mod access;
mod body;
mod dial;
mod endpoint;
mod endpoints;
mod error;
mod http1;
mod http2;
mod resolver;
mod sent;
mod service;
mod version;
mod view;

pub(crate) use self::body::PoolBody;
pub(crate) use self::dial::Dial;
pub(crate) use self::endpoints::Target;
pub(crate) use self::error::{PoolError, PoolErrors, h2_error};
pub(crate) use self::service::{Pool, Protocol};
#[cfg(feature = "fuzz")]
pub(crate) use self::version::{to_http1, to_http2};
pub(crate) use self::view::PoolView;

use std::time::Duration;

/// The bounds of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolLimits {
    /// HTTP/1.1 connections to one instance.
    pub(crate) connections: usize,
    /// HTTP/2 connections to one instance.
    pub(crate) http2_connections: usize,
    /// Streams of one HTTP/2 connection, if its callee allows as many.
    pub(crate) streams: usize,
    /// Bytes of the head of an answer: over HTTP/1.1 it may be somewhat more.
    pub(crate) header_bytes: usize,
    /// Requests that wait for a connection to one instance.
    pub(crate) pending: usize,
    /// How long a connection may take to be made, the wait for a free place included.
    pub(crate) connect: Duration,
    /// How long an unused connection stays open, about.
    pub(crate) idle: Duration,
}
