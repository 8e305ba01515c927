//! Chains of services, and the requests that each application has to handle.

mod storms;
