//! The bounds of the protocol's section 11 and the walk of its section 12, computed from the
//! configuration alone.

use super::config::{Config, Retries, Role};

/// A configuration, with what its bounds are computed from.
pub(crate) struct Case<'c> {
    pub(crate) config: &'c Config,
    /// R: the largest number of attempts of any edge.
    pub(crate) attempts: u64,
    depths: Vec<u32>,
    /// The edges from the root to each node; empty where the topology is no tree.
    paths: Vec<Vec<usize>>,
}

impl<'c> Case<'c> {
    pub(crate) fn new(config: &'c Config) -> Self {
        let attempts = config.edges.iter().map(|edge| u64::from(edge.retries.attempts())).max();
        let nodes = 0..config.topology.nodes();
        let is_tree = config.topology.is_tree();
        let path = |node| if is_tree { config.topology.path(node) } else { Vec::new() };
        Self {
            config,
            attempts: attempts.unwrap_or(1),
            depths: nodes.clone().map(|node| config.topology.depth(node)).collect(),
            paths: nodes.map(path).collect(),
        }
    }

    pub(crate) fn depth(&self, node: usize) -> u64 {
        u64::from(self.depths[node])
    }

    /// R^c, c culprits; no more levels than there are.
    pub(crate) fn for_culprits(&self, node: usize, culprits: u32) -> u64 {
        self.attempts.pow(culprits.min(self.depths[node]))
    }

    /// 1 + d(R−1).
    pub(crate) fn linear(&self, node: usize) -> u64 {
        self.marked(self.depth(node))
    }

    /// R^(k+1), k services with lost context above the culprit.
    pub(crate) fn for_context_loss(&self, culprit: usize) -> u64 {
        let lost = self.callers(culprit).filter(|&node| node != 0 && self.loses_context(node));
        self.attempts.saturating_pow(lost.count() as u32 + 1)
    }

    /// R^(S+Bl): claim sources, and hops that retry blindly, on the path to the culprit.
    pub(crate) fn for_sources(&self, culprit: usize) -> u64 {
        let mut factors = 0;
        for &edge in &self.paths[culprit] {
            let ends = self.config.topology.edges()[edge];
            let is_source = ends.to == culprit
                || matches!(self.role(ends.to), Role::ContextLost | Role::NonCooperative);
            if self.role(ends.from) == Role::NonCooperative {
                factors += u32::from(self.config.edges[edge].retries.are_made());
            } else {
                factors += u32::from(is_source);
            }
        }
        self.attempts.saturating_pow(factors)
    }

    /// The product of the attempts of all edges that multiply on the way to `node`, for one
    /// culprit whose answers are seen (protocol section 12).
    pub(crate) fn for_radius(&self, culprit: usize, node: usize) -> u64 {
        let path = &self.paths[culprit];
        let mut reads = match self.role(culprit) {
            Role::NonCooperative => Reads::Missing,
            Role::Correlated
            | Role::ContextLost
            | Role::Observing
            | Role::ObeyingLayer
            | Role::BlindLayer
            | Role::ObeyingLibrary => Reads::Claimed,
        };
        let mut product = 1;
        let on_the_way = &self.paths[node];
        for &edge in path.iter().rev() {
            let setting = self.config.edges[edge];
            let caller = self.role(self.config.topology.edges()[edge].from);
            let reads_nothing = matches!(caller, Role::NonCooperative);
            let blind = reads_nothing || caller == Role::Observing;
            let multiplies = setting.retries.are_made() && (blind || reads != Reads::Unclaimed);
            if multiplies && on_the_way.contains(&edge) {
                product *= u64::from(setting.retries.attempts());
            }
            if setting.open {
                break;
            }
            reads = if reads_nothing {
                Reads::Missing
            } else if caller == Role::ContextLost || !setting.held.is_blamed() {
                Reads::Claimed
            } else if multiplies
                || reads == Reads::Unclaimed
                || setting.retries == Retries::BudgetDenied
            {
                Reads::Unclaimed
            } else {
                Reads::Claimed
            };
        }
        product
    }

    /// The product over the segments that context losses cut the way to `node` into. The last one
    /// counts like those that end in a context loss where there is one below any of its nodes: an
    /// error that is claimed there is retried in marked requests too.
    pub(crate) fn for_lost_segments(&self, node: usize) -> u64 {
        let ends_lost = |hops| self.attempts * (1 + (hops - 1) * (self.attempts - 1));
        let (product, hops) = self.over_segments(node, ends_lost);
        match hops {
            0 => product,
            hops if self.context_is_lost_below(node, hops) => product * ends_lost(hops),
            hops => product * self.marked(hops),
        }
    }

    /// The same where every level times out.
    pub(crate) fn for_timeouts(&self, node: usize) -> u64 {
        let (product, hops) = self.over_segments(node, |hops| self.marked(hops));
        product * self.marked(hops)
    }

    /// 1 + l(R−1), l hops.
    fn marked(&self, hops: u64) -> u64 {
        1 + hops * (self.attempts - 1)
    }

    /// The product over the segments that end in a context loss, and the hops after the last.
    fn over_segments(&self, node: usize, segment: impl Fn(u64) -> u64) -> (u64, u64) {
        let (mut product, mut hops) = (1, 0);
        for &edge in &self.paths[node] {
            hops += 1;
            if self.loses_context(self.config.topology.edges()[edge].to) {
                product *= segment(hops);
                hops = 0;
            }
        }
        (product, hops)
    }

    /// Whether context is lost below a node that the last `hops` hops to `node` lead to.
    fn context_is_lost_below(&self, node: usize, hops: u64) -> bool {
        let way = &self.paths[node];
        let last = &way[way.len() - hops as usize..];
        let below = |other: usize| self.paths[other].iter().any(|edge| last.contains(edge));
        (0..self.depths.len()).any(|other| self.loses_context(other) && below(other))
    }

    /// R^k · (1 + (d−k)(R−1)), k observing services that retry on the way to `node`.
    pub(crate) fn for_observers(&self, node: usize) -> u64 {
        let observing = self.paths[node].iter().filter(|&&edge| {
            let from = self.config.topology.edges()[edge].from;
            self.role(from) == Role::Observing && self.config.edges[edge].retries.are_made()
        });
        let observing = observing.count() as u64;
        let rest = 1 + (self.depth(node) - observing) * (self.attempts - 1);
        self.attempts.saturating_pow(observing as u32) * rest
    }

    /// How many ways lead from the root to `node`.
    pub(crate) fn ways(&self, node: usize) -> u64 {
        let mut ways = vec![0; self.config.topology.nodes()];
        ways[0] = 1_u64;
        for from in 0..ways.len() {
            for &edge in self.config.topology.calls(from) {
                ways[self.config.topology.edges()[edge].to] += ways[from];
            }
        }
        ways[node]
    }

    fn callers(&self, node: usize) -> impl Iterator<Item = usize> {
        self.paths[node].iter().map(|&edge| self.config.topology.edges()[edge].from)
    }

    fn role(&self, node: usize) -> Role {
        self.config.roles[node]
    }

    fn loses_context(&self, node: usize) -> bool {
        self.role(node) == Role::ContextLost
    }
}

/// What the caller of the next edge reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reads {
    Missing,
    Claimed,
    Unclaimed,
}
