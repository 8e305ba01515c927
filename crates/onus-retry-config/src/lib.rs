//! Other people's retry configuration — of meshes, gateways and gRPC clients — read into one model.
//! It reads text that is handed to it, never a cluster or a network, and judges nothing: what a
//! policy comes to in a mesh is for others to say.
//! Above it sits onus-audit.
//!
//! ```
//! let mut import = onus_retry_config::Import::default();
//! import.read("reviews.yaml", r#"
//! apiVersion: networking.istio.io/v1
//! kind: VirtualService
//! metadata: {name: reviews, namespace: shop}
//! spec:
//!   hosts: [reviews]
//!   http:
//!   - route: [{destination: {host: reviews}}]
//!     retries: {attempts: 3, perTryTimeout: 2s, retryOn: 5xx}
//! "#);
//! let config = import.finish();
//! let policy = &config.policies[0];
//! assert_eq!(policy.callee.to_string(), "reviews.shop");
//! assert_eq!(policy.attempts.most(), Some(4)); // three retries
//! assert!(config.unread.is_empty());
//! ```

mod condition;
mod cursor;
mod dialects;
mod documents;
mod import;
mod node;
mod policy;
mod route;
mod service;
mod unread;

pub use condition::{Condition, Traffic};
pub use import::{Import, RetryConfig};
pub use policy::{
    Attempts, Backoff, Budget, BudgetBasis, CalleeBudget, Caller, Dialect, Floor, Place, Policy,
};
pub use route::{Match, Path, Route};
pub use service::Service;
pub use unread::{Unread, Why};
