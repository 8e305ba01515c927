//! Error ownership: the pure decisions on retries and claims.
