//! Istio's `istio_requests_total`: the caller's sidecar counts a call once, the callee's counts each
//! attempt.

use std::collections::BTreeMap;

use onus_promql::Sample;
use onus_retry_config::{Service, Traffic};

use super::{About, Metrics, Question};

/// Canonical services are what a workload is; the service is what was called.
const BY: &str = "reporter, source_canonical_service, source_workload_namespace, \
                  destination_canonical_service, destination_workload_namespace, \
                  destination_service_name, destination_service_namespace, request_protocol";

pub(super) fn questions(window: &str) -> Vec<Question> {
    let requests = format!("sum by ({BY}) (increase(istio_requests_total[{window}]))");
    // What term-4 of the protocol calls an error: 0 is a caller that went away.
    let failures = format!(
        "sum by ({BY}) (increase(istio_requests_total{{reporter=\"source\",\
         response_code=~\"5..|429\"}}[{window}]) or increase(istio_requests_total{{\
         reporter=\"source\",grpc_response_status=~\"2|4|8|10|13|14|15\"}}[{window}]))"
    );
    vec![
        Question { about: About::IstioRequests, promql: requests },
        Question { about: About::IstioFailures, promql: failures },
    ]
}

/// The series, until all are there.
#[derive(Clone, Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    /// Which workloads answer for a service.
    behind: BTreeMap<Service, BTreeMap<Service, f64>>,
}

#[derive(Clone, Debug)]
struct Row {
    about: About,
    reporter: Reporter,
    source: Option<Service>,
    called: Option<Service>,
    answering: Option<Service>,
    traffic: Traffic,
    value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reporter {
    Source,
    Destination,
    Other,
}

impl Rows {
    pub(super) fn take(&mut self, about: About, sample: &Sample) {
        let row = Row {
            about,
            reporter: match sample.label("reporter") {
                "source" => Reporter::Source,
                "destination" => Reporter::Destination,
                _ => Reporter::Other,
            },
            source: service(sample, "source_canonical_service", "source_workload_namespace"),
            called: service(sample, "destination_service_name", "destination_service_namespace"),
            answering: service(
                sample,
                "destination_canonical_service",
                "destination_workload_namespace",
            ),
            traffic: match sample.label("request_protocol") {
                "http" => Traffic::Http,
                "grpc" => Traffic::Grpc,
                _ => Traffic::Unknown,
            },
            value: sample.value,
        };
        if let (Some(called), Some(answering)) = (&row.called, &row.answering) {
            let behind = self.behind.entry(called.clone()).or_default();
            *behind.entry(answering.clone()).or_default() += row.value;
        }
        self.rows.push(row);
    }

    /// The workload that answers for a service: then a chain is one chain, whatever the two are
    /// called. A service with several in different roles stays itself.
    fn node(&self, row: &Row) -> Option<Service> {
        let called = row.called.as_ref().or(row.answering.as_ref())?;
        match self.behind.get(called) {
            Some(behind) if behind.len() == 1 => behind.keys().next().cloned(),
            Some(_) | None => Some(called.clone()),
        }
    }

    pub(super) fn join(self, metrics: &mut Metrics) {
        let (mut nameless, mut passed, mut other) = (0.0, 0.0, 0.0);
        for row in &self.rows {
            if row.reporter == Reporter::Other {
                other += row.value;
                continue;
            }
            let Some(callee) = self.node(row) else {
                passed += row.value;
                continue;
            };
            if ELSEWHERE.contains(&callee.name.as_str()) {
                passed += row.value;
                continue;
            }
            let Some(caller) = row.source.clone() else {
                // Whoever has no sidecar is seen by the callee only.
                nameless += if row.about == About::IstioRequests { row.value } else { 0.0 };
                continue;
            };
            let edge = metrics.edge(caller, callee);
            edge.travels(row.traffic);
            edge.called.extend(row.called.clone());
            match (row.about, row.reporter) {
                (About::IstioFailures, _) => edge.failures += row.value,
                (_, Reporter::Source) => edge.calls += row.value,
                (_, _) => *edge.attempts.get_or_insert(0.0) += row.value,
            }
        }
        for (requests, what) in [
            (nameless, "come from callers that Istio does not name, as from outside of the mesh"),
            (passed, "go to hosts that Istio does not know"),
            (other, "are reported by neither side's sidecar, as by waypoints of ambient meshes"),
        ] {
            if requests > 0.0 {
                metrics.untold.push(format!("istio_requests_total: {requests:.0} requests {what}"));
            }
        }
    }
}

fn service(sample: &Sample, name: &str, namespace: &str) -> Option<Service> {
    let known = |label| Some(sample.label(label)).filter(|it| !["", "unknown"].contains(it));
    Some(Service::new(known(name)?, known(namespace)))
}

/// What Istio calls hosts that it does not know.
const ELSEWHERE: [&str; 3] =
    ["PassthroughCluster", "BlackHoleCluster", "InboundPassthroughCluster"];
