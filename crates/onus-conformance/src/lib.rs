//! Conformance vectors of the error-ownership protocol, and the runner for any host.
