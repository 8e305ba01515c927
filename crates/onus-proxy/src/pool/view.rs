//! What there is of a pool, for metrics.

/// What there is of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PoolView {
    /// Whom it connects to.
    pub(crate) callee: String,
    /// Instances that are known.
    pub(crate) instances: usize,
    /// Those of them that could not be reached a moment ago.
    pub(crate) failing: usize,
    /// Addresses of its name beyond those that are used.
    pub(crate) left_out: usize,
    /// HTTP/1.1 connections.
    pub(crate) connections: usize,
    /// Those of them that wait for a request.
    pub(crate) idle: usize,
    /// HTTP/2 connections.
    pub(crate) http2_connections: usize,
    /// Requests on them.
    pub(crate) streams: usize,
    /// Requests that wait for a connection.
    pub(crate) waiting: usize,
    /// Requests that were sent over a second connection.
    pub(crate) resends: u64,
    /// Requests that met nobody.
    pub(crate) unreachable: u64,
    /// Requests that found no connection.
    pub(crate) refused: u64,
    /// Requests whose connection broke.
    pub(crate) broken: u64,
    /// Requests that nobody waited for any more.
    pub(crate) given_up: u64,
    /// Interim answers whose client cannot be told.
    pub(crate) interims_untold: u64,
    /// Questions to the resolver that brought no address.
    pub(crate) lookups_failed: u64,
}
