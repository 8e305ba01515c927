//! What the mesh's own metrics say: calls, attempts and failures of each edge.

mod istio;
mod linkerd;
mod onus;

use std::collections::BTreeMap;

use onus_graph::Coverage;
use onus_promql::Sample;
use onus_retry_config::{Service, Traffic};

use crate::edges::{Class, Observed};

/// A question to a server of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is about: the answer is given back with it.
    pub about: About,
    /// The expression.
    pub promql: String,
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum About {
    /// Requests that Istio's sidecars have seen, on either side.
    IstioRequests,
    /// Those that failed, as callers have seen them.
    IstioFailures,
    /// Answers that Linkerd's proxies got for calls, each attempt counted.
    LinkerdResponses,
    /// Calls by routes of a ServiceProfile.
    LinkerdRouteCalls,
    /// Attempts of them.
    LinkerdRouteAttempts,
    /// Calls by routes of the Gateway API.
    LinkerdCalls,
    /// Retries of them.
    LinkerdRetries,
    /// Calls that Onus has counted.
    OnusCalls,
    /// Retries that Onus has made.
    OnusRetries,
    /// Classes of edges that Onus has learnt.
    OnusClasses,
    /// Modes of the services with Onus.
    OnusModes,
}

/// The questions whose answers make [`Metrics`], about so much time, as PromQL writes it.
#[must_use]
pub fn questions(window: &str) -> Vec<Question> {
    [istio::questions(window), linkerd::questions(window), onus::questions(window)].concat()
}

/// What metrics say.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    edges: BTreeMap<(Service, Service), Observed>,
    coverage: BTreeMap<Service, Coverage>,
    istio: istio::Rows,
    sources: Sources,
    untold: Vec<String>,
}

/// Whose series there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sources {
    istio: bool,
    linkerd: bool,
    onus: bool,
}

impl Metrics {
    /// Takes the answer to a question. All answers are taken before anything is read.
    pub fn take(&mut self, about: About, samples: &[Sample]) {
        // An increase of nothing, or of a counter that was seen once only, says nothing.
        let samples = || samples.iter().filter(|sample| sample.value > 0.0);
        let any = samples().next().is_some();
        match about {
            About::IstioRequests | About::IstioFailures => {
                self.sources.istio |= any;
                samples().for_each(|sample| self.istio.take(about, sample));
            }
            About::LinkerdResponses
            | About::LinkerdRouteCalls
            | About::LinkerdRouteAttempts
            | About::LinkerdCalls
            | About::LinkerdRetries => {
                self.sources.linkerd |= any;
                samples().for_each(|sample| linkerd::take(self, about, sample));
            }
            About::OnusCalls | About::OnusRetries | About::OnusClasses | About::OnusModes => {
                self.sources.onus |= any;
                samples().for_each(|sample| onus::take(self, about, sample));
            }
        }
    }

    /// Puts together what needs all answers.
    #[must_use]
    pub fn finish(mut self) -> Self {
        std::mem::take(&mut self.istio).join(&mut self);
        self
    }

    /// Whether any series was there.
    #[must_use]
    pub fn any(&self) -> bool {
        let Sources { istio, linkerd, onus } = self.sources;
        istio || linkerd || onus
    }

    /// Whose series there were, for people.
    #[must_use]
    pub fn sources(&self) -> Vec<&'static str> {
        let Sources { istio, linkerd, onus } = self.sources;
        [(istio, "Istio"), (linkerd, "Linkerd"), (onus, "Onus")]
            .into_iter()
            .filter_map(|(there, name)| there.then_some(name))
            .collect()
    }

    pub(crate) fn is_istio(&self) -> bool {
        self.sources.istio
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = (&Service, &Service, &Observed)> {
        self.edges.iter().map(|((caller, callee), observed)| (caller, callee, observed))
    }

    pub(crate) fn coverage(&self) -> impl Iterator<Item = (&Service, Coverage)> {
        self.coverage.iter().map(|(service, coverage)| (service, *coverage))
    }

    /// What was in the series and is in no edge.
    pub(crate) fn untold(&self) -> &[String] {
        &self.untold
    }

    fn edge(&mut self, caller: Service, callee: Service) -> &mut Observed {
        self.edges.entry((caller, callee)).or_default()
    }
}

impl Observed {
    fn travels(&mut self, traffic: Traffic) {
        self.traffic = match self.traffic {
            None => Some(traffic),
            Some(known) if known == traffic => Some(known),
            Some(_) => Some(Traffic::Unknown),
        };
    }

    /// One procedure of an edge: the edge is fail-open only if all are.
    fn is_of(&mut self, class: Class) {
        self.class = match (self.class, class) {
            (None, class) => Some(class),
            (Some(known), class) if known == class => Some(known),
            (Some(Class::FailClose), _) | (_, Class::FailClose) => Some(Class::FailClose),
            (Some(_), _) => Some(Class::Unknown),
        };
    }
}
