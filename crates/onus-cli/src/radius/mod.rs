//! How far a storm would reach in a graph, and what would lower it: for every command that learns
//! of one.

mod drawing;
mod json;
mod table;

use std::collections::BTreeMap;

use onus_graph::{
    Advice, Coverage, Mesh, Outlook, Ownership, Reading, ServiceId, Storms, Survival,
};

use crate::cli::{ClassReading, StormOptions};
use crate::exit::Refused;

pub(crate) use json::{RadiusEntry, entry};
pub(crate) use table::render;

/// What is known of the calls of one service to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The most attempts of a call, where they were seen.
    pub(crate) attempts: Option<u32>,
    /// Whether the caller survives.
    pub(crate) survival: Survival,
}

impl Known {
    /// Nothing but that there are calls.
    pub(crate) const NOTHING: Self = Self { attempts: None, survival: Survival::UNSEEN };
}

/// Edges by caller and callee.
pub(crate) type KnownEdges = BTreeMap<(String, String), Known>;

/// How far a storm would reach, and what that rests on.
pub(crate) struct Radius {
    pub(crate) mesh: Mesh,
    /// The storms of all entries, the largest first; there is one.
    pub(crate) outlooks: Vec<Outlook>,
    /// All storms without ownership, and with it.
    without: Storms,
    with: Storms,
    pub(crate) assumed: Assumed,
}

/// What would lower the largest storm, best first.
struct Lower {
    /// While nobody has Onus.
    without: Vec<Advice>,
    /// With Onus as far as the options say.
    with: Vec<Advice>,
    /// The services whose missing Onus would cost most.
    needed: Vec<Advice>,
}

/// What was assumed, because nothing shows it.
pub(crate) struct Assumed {
    /// Attempts …
    pub(crate) attempts: u32,
    /// … of so many edges; on the others attempts were seen.
    pub(crate) on_edges: usize,
    pub(crate) reading: Reading,
    /// Edges of services to themselves, which were left out: a service that passes a request to
    /// itself is no hop that an error climbs.
    pub(crate) to_themselves: usize,
}

impl Radius {
    /// The storms of a graph; `None` of one without edges. An option that names a service which is
    /// none of the graph's is refused.
    pub(crate) fn of(edges: &KnownEdges, options: &StormOptions) -> Result<Option<Self>, Refused> {
        let mut mesh = Mesh::new();
        let mut assumed = Assumed {
            attempts: options.attempts,
            on_edges: 0,
            reading: options.reading.into(),
            to_themselves: 0,
        };
        for ((caller, callee), known) in edges {
            if caller == callee {
                assumed.to_themselves += 1;
                continue;
            }
            assumed.on_edges += usize::from(known.attempts.is_none());
            let attempts = known.attempts.unwrap_or(options.attempts);
            mesh.add_edge(caller, callee, known.survival.edge(attempts, assumed.reading));
        }
        for (names, coverage) in [
            (&options.no_claims, Coverage::NonCooperative),
            (&options.context_loss, Coverage::ContextLost),
        ] {
            for name in names {
                let service = mesh.find(name).ok_or_else(|| {
                    Refused(format!("{name} is no service that calls another, or is called"))
                })?;
                mesh.cover(service, coverage);
            }
        }
        let graph = mesh.graph();
        let (without, with) = (graph.storms(Ownership::Nowhere), graph.storms(Ownership::AsIs));
        let outlooks = graph.outlooks(&without, &with);
        Ok((!outlooks.is_empty()).then_some(Self { outlooks, without, with, assumed, mesh }))
    }

    /// The entry with the largest storm without ownership.
    pub(crate) fn worst(&self) -> &Outlook {
        &self.outlooks[0]
    }

    /// The entries that a result has room for, and how many it has none for.
    fn most(&self, most: usize) -> (&[Outlook], usize) {
        let shown = most.min(self.outlooks.len());
        (&self.outlooks[..shown], self.outlooks.len() - shown)
    }

    /// What would lower the largest storm: tried change by change.
    fn lower(&self) -> Lower {
        let (graph, entry) = (self.mesh.graph(), self.worst().entry);
        Lower {
            without: graph.advice(entry, Ownership::Nowhere),
            with: graph.advice(entry, Ownership::AsIs),
            needed: graph.most_needed(entry),
        }
    }

    fn names(&self, services: &[ServiceId]) -> Vec<&str> {
        services.iter().map(|&service| self.mesh.name(service)).collect()
    }
}

impl From<ClassReading> for Reading {
    fn from(reading: ClassReading) -> Self {
        match reading {
            ClassReading::Proven => Self::Proven,
            ClassReading::Calls => Self::Calls,
            ClassReading::Requests => Self::Requests,
        }
    }
}

/// Entries in a result that is to have all: where everybody calls everybody, each is one, with a way
/// through all.
const ALL: usize = 1_000;
