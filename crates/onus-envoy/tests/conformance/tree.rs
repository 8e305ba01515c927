//! A tree of services: each is an application between an inbound and an outbound filter, and its
//! Envoy makes the retries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use onus_agent::wire::ClaimHeaders;
use onus_agent::{Source, Switches};
use onus_conformance::step::ModeName;
use onus_conformance::tree::{Node, RetriesBy, TreeAnswer, TreeEdge, What};
use onus_conformance::{Counts, TreeVector, Unsupported};
use onus_core::{CalleeClaim, EdgeClass};
use onus_envoy::{
    AttemptFilter, CalleeConfig, FilterConfig, Hub, InboundFilter, OutboundFilter, RetryConfig,
    Service, Timestamp,
};

use crate::cast::Played;

/// Runs the tree, one thing after the other: Envoy waits for no timer in it.
pub(super) fn run(vector: &TreeVector) -> Result<Counts, Unsupported> {
    let root = vector.root().ok_or("needs one root")?.to_owned();
    let mut mesh = Mesh { vector, services: BTreeMap::new(), handled: BTreeMap::new() };
    for name in vector.calls().keys() {
        mesh.add(name);
    }
    let mut answer = None;
    for _ in 0..vector.runs {
        answer = Some(match mesh.serve(&root, HeaderMap::new()) {
            None => TreeAnswer::Error(CalleeClaim::Silent),
            Some(reply) if !reply.failed() => TreeAnswer::Ok,
            Some(reply) => {
                TreeAnswer::Error(ClaimHeaders::default().read(&reply.headers).callee_claim())
            }
        });
    }
    Ok(Counts { requests: mesh.handled, answer })
}

/// An answer, as it leaves the callee's Envoy.
struct Reply {
    status: u16,
    headers: HeaderMap,
}

impl Reply {
    fn failed(&self) -> bool {
        self.status >= 500
    }

    fn is_vetoed(&self) -> bool {
        self.headers.contains_key("x-envoy-ratelimited")
    }
}

struct Mesh<'a> {
    vector: &'a TreeVector,
    services: BTreeMap<String, Arc<Service>>,
    handled: BTreeMap<String, u64>,
}

impl Mesh<'_> {
    fn add(&mut self, name: &str) {
        let node = self.vector.node(name);
        if !node.onus {
            return;
        }
        let calls = &self.vector.calls()[name];
        let callees = calls.iter().map(|to| {
            let edge = self.vector.edge(name, to);
            ((*to).to_owned(), callee(&node, &edge))
        });
        let config = FilterConfig {
            service: Some(name.to_owned()),
            mode: match node.mode {
                ModeName::Off => "off",
                ModeName::Observe => "observe",
                ModeName::Enforce => "enforce",
            }
            .to_owned(),
            silent_claims: node.silent_claims,
            callees: callees.collect(),
            ..FilterConfig::default()
        };
        let service = Hub::new().service(config, 1, Timestamp::ZERO).unwrap();
        if node.shield {
            let shield = Some(Duration::from_secs(900));
            let switches = Switches { shield, ..Switches::default() };
            service.agent().switch(Source::Admin, &switches, Timestamp::ZERO);
        }
        self.services.insert(name.to_owned(), service);
    }

    /// A request at the node's inbound listener; `None` where its answer is lost.
    fn serve(&mut self, name: &str, headers: HeaderMap) -> Option<Reply> {
        let number = self.handled.entry(name.to_owned()).or_default();
        *number += 1;
        let number = *number;
        let mut filter = self.services.get(name).cloned().map(InboundFilter::new);
        let mut stream = Played::request(headers);
        if let Some(filter) = &mut filter {
            filter.on_request(&mut stream);
        }
        stream.status = self.handle(name, number, &stream.request);
        if let Some(filter) = &mut filter {
            filter.on_response(&mut stream, true);
            filter.on_end(&stream);
        }
        let lost = self.vector.happens(What::NeverAnswers, name, number);
        (!lost).then_some(Reply { status: stream.status, headers: stream.response })
    }

    /// What the application answers.
    fn handle(&mut self, name: &str, number: u64, request: &HeaderMap) -> u16 {
        let happens = |what| self.vector.happens(what, name, number);
        let excluded = happens(What::ExcludedError);
        let error = if excluded { EXCLUDED } else { ORDINARY };
        let fails = happens(What::Fails);
        if happens(What::FailsAtOnce) {
            return error;
        }
        let node = self.vector.node(name);
        let parallel = self.vector.parallel.contains(name);
        let callees: Vec<String> =
            self.vector.calls()[name].iter().map(|to| (*to).to_owned()).collect();
        let mut failed = false;
        for to in callees {
            let edge = self.vector.edge(name, &to);
            let ok = (0..node.tries.max(1)).any(|_| self.call(name, &node, &edge, request));
            failed |= !ok && !edge.fail_open;
            if failed && !parallel {
                return error;
            }
        }
        if failed || fails { error } else { 200 }
    }

    /// A call through the node's outbound listener; whether it was answered without an error.
    fn call(&mut self, name: &str, node: &Node, edge: &TreeEdge, request: &HeaderMap) -> bool {
        let mut carried = HeaderMap::new();
        if let Some(state) = request.get("tracestate").filter(|_| !node.context_lost) {
            carried.insert("tracestate", state.clone());
        }
        let service = self.services.get(name).cloned();
        let mut filter = service.clone().map(OutboundFilter::new);
        let mut stream = Played::request(carried);
        stream.cluster.clone_from(&edge.to);
        if let Some(filter) = &mut filter {
            filter.on_request(&mut stream, edge.replayable);
        }
        let reply = self.attempts(node, edge, &mut stream, service.as_ref());
        if reply.is_none() && node.drops {
            // The application has gone, and with it the stream.
            stream.flags = Some(CALLER_GONE);
            if let Some(filter) = &mut filter {
                filter.on_end(&stream);
            }
            return false;
        }
        match reply {
            Some(reply) => (stream.status, stream.response) = (reply.status, reply.headers),
            None => {
                (stream.status, stream.is_reply) = (503, Some(false));
                stream.flags = Some(CONNECTION_BROKE);
            }
        }
        if let Some(filter) = &mut filter {
            filter.on_response(&mut stream, true);
            filter.on_end(&stream);
        }
        stream.status < 500
    }

    /// Envoy's router: sends the request until its policy is content, or told to stop.
    fn attempts(
        &mut self,
        node: &Node,
        edge: &TreeEdge,
        stream: &mut Played,
        service: Option<&Arc<Service>>,
    ) -> Option<Reply> {
        let most = if !node.onus && node.retries == RetriesBy::Onus {
            1
        } else {
            edge.attempts.unwrap_or(1).max(1)
        };
        let obeys = node.retries != RetriesBy::BlindLayer;
        for attempt in 1.. {
            stream.attempts = Some(attempt);
            let watches = node.retries == RetriesBy::Onus;
            let mut filter = service.filter(|_| watches).cloned().map(AttemptFilter::new);
            // Each attempt has the head of the stream, and what is changed there stays.
            if let Some(filter) = &mut filter {
                let _ = filter.on_request(stream, true);
            }
            let mut head = stream.request.clone();
            if attempt > 1 {
                head.insert("x-envoy-attempt-count", attempt.into());
            }
            let mut reply = self.serve(&edge.to, head);
            if let (Some(filter), Some(reply)) = (&mut filter, &mut reply) {
                (stream.status, stream.response) = (reply.status, reply.headers.clone());
                let _ = filter.on_response(stream);
                reply.headers.clone_from(&stream.response);
            }
            if let Some(filter) = &mut filter {
                filter.on_end(stream);
            }
            let again = match &reply {
                // The handler gives up before Envoy does.
                None => !node.drops,
                Some(reply) => {
                    let covered = watches && reply.status == EXCLUDED;
                    reply.failed() && !covered && !(obeys && reply.is_vetoed())
                }
            };
            if !again || attempt >= most || !edge.replayable {
                return reply;
            }
        }
        None
    }
}

/// What the configuration says of a callee. Where a vector gives the node's retries to another layer,
/// the filter of attempts is not installed.
fn callee(node: &Node, edge: &TreeEdge) -> CalleeConfig {
    let watched = node.retries == RetriesBy::Onus && edge.attempts.unwrap_or(0) >= 2;
    let retry = watched.then(|| RetryConfig {
        attempts: edge.attempts.unwrap_or(0),
        // Two retries for each call are no limit to a few attempts.
        budget_percent: edge.budget_percent.unwrap_or(100),
        budget_min_per_second: if edge.budget_percent.is_some() { 0 } else { 1_000 },
        budget_from_successes: false,
        gate: false,
        probes: false,
        hold_grpc: false,
    });
    let class = match edge.held {
        Some(EdgeClass::FailClose) => Some("fail-close".to_owned()),
        Some(EdgeClass::FailOpen) => Some("fail-open".to_owned()),
        Some(EdgeClass::Unknown) | None => None,
    };
    CalleeConfig { retry, class, ..CalleeConfig::default() }
}

/// What a node answers that fails, and what it answers where no policy covers its error.
const ORDINARY: u16 = 503;
const EXCLUDED: u16 = 501;

/// Envoy's flags: DownstreamConnectionTermination, UpstreamConnectionTermination.
const CALLER_GONE: u64 = 1 << 14;
const CONNECTION_BROKE: u64 = 1 << 6;
