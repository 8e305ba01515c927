//! Service graphs: how far a retry storm reaches, how large it gets, and what ownership prevents
//! (protocol §12).
//! It never does I/O, reads no clock and decides nothing about a call: it says beforehand what the
//! decisions of `onus-core` come to in a whole mesh.
//! Above it sit trace import, analysis and simulator.
//!
//! ```
//! use onus_graph::{Graph, Ownership, Service, Edge};
//!
//! // A calls B, B calls C; every hop tries twice.
//! let mut graph = Graph::new();
//! let [a, b, c] = ["A", "B", "C"].map(|name| graph.add_service(Service::new(name)));
//! graph.add_edge(a, b, Edge::retrying(2));
//! graph.add_edge(b, c, Edge::retrying(2));
//!
//! let without = graph.storm(a, Ownership::Nowhere);
//! assert_eq!((without.radius, without.amplification), (2, 4.0));
//! let with = graph.storm(a, Ownership::AsIs);
//! assert_eq!((with.radius, with.amplification), (1, 2.0));
//! ```

mod advice;
mod draw;
mod graph;
mod import;
mod mesh;
mod outlook;
mod prevented;
mod reading;
mod storm;
mod survival;

pub use advice::{Advice, Change, TRIED};
pub use draw::{Drawing, Look};
pub use graph::{Coverage, Edge, Graph, Service, ServiceId};
pub use import::{EdgeList, IsotopeService, ListFormat, ListedEdge, Place, Refused, isotope};
pub use mesh::Mesh;
pub use outlook::Outlook;
pub use prevented::{Attempts, Calls, Prevented, Retries};
pub use reading::{Answer, Ownership};
pub use storm::{Loads, Storm, StormSize, Storms};
pub use survival::{Failures, Reading, Survival};
