//! The vectors of protocol §11 with several requests at a time: requests at each service for one
//! request at the first, where the last one fails persistently.

use std::time::Duration;

use onus::{Annotation, Mode};
use onus_demo::{
    CallOrder, CalleeConfig, Cluster, Coverage, Fault, Load, ServiceConfig, Topology, What,
};

use super::http;

const REQUESTS: u64 = 8;

/// A topology to change, by letters of services.
pub(super) struct Case(pub(super) Topology);

/// A chain of services with one letter each; all enforce and try twice, the last one fails.
pub(super) fn chain(names: &str) -> Case {
    let names: Vec<_> = names.split("").filter(|name| !name.is_empty()).collect();
    let mut topology = Topology::chain(names);
    for callee in topology.services.iter_mut().flat_map(|service| &mut service.callees) {
        callee.attempts = 2;
    }
    topology.services.last_mut().unwrap().faults = vec![Fault::always(What::Fails)];
    Case(topology)
}

/// R calls A, which calls B and C, which both call D; D fails.
fn diamond(order: CallOrder) -> Case {
    let callee = |name: &str| CalleeConfig { attempts: 2, ..CalleeConfig::new(name) };
    let service = |name: &str, callees: &[&str]| ServiceConfig {
        callees: callees.iter().map(|name| callee(name)).collect(),
        order,
        ..ServiceConfig::new(name)
    };
    let mut services = vec![
        service("R", &["A"]),
        service("A", &["B", "C"]),
        service("B", &["D"]),
        service("C", &["D"]),
        service("D", &[]),
    ];
    services[4].faults = vec![Fault::always(What::Fails)];
    Case(Topology { services, ..Topology::chain([]) })
}

impl Case {
    pub(super) fn each(mut self, names: &str, change: impl Fn(&mut ServiceConfig)) -> Self {
        for name in names.chars() {
            change(self.0.service_mut(&name.to_string()).unwrap());
        }
        self
    }

    fn all(mut self, change: impl Fn(&mut ServiceConfig)) -> Self {
        self.0.services.iter_mut().for_each(change);
        self
    }

    pub(super) fn off(self) -> Self {
        self.all(|service| service.mode = Mode::Off)
    }

    fn observing(self, names: &str) -> Self {
        self.each(names, |service| service.mode = Mode::Observe)
    }

    pub(super) fn context_lost(self, names: &str) -> Self {
        self.each(names, |service| service.coverage = Coverage::ContextLost)
    }

    pub(super) fn without_onus(self, names: &str) -> Self {
        self.each(names, |service| service.coverage = Coverage::NonCooperative)
    }

    fn silent(self, names: &str) -> Self {
        self.each(names, |service| service.faults = vec![Fault::always(What::Closes)])
    }

    fn shielded(self, names: &str) -> Self {
        self.each(names, |service| service.shield = true)
    }

    pub(super) fn attempts(self, names: &str, attempts: u32) -> Self {
        self.each(names, |service| service.callees[0].attempts = attempts)
    }

    fn tries(self, names: &str, tries: u32) -> Self {
        self.each(names, |service| service.callees[0].tries = tries)
    }

    fn tolerant(self, names: &str, annotation: Option<Annotation>) -> Self {
        self.each(names, |service| {
            service.callees[0].tolerated = true;
            service.callees[0].annotation = annotation;
        })
    }

    fn failing(self, names: &str) -> Self {
        self.each(names, |service| service.faults = vec![Fault::always(What::Fails)])
    }
}

async fn check(what: &str, case: Case, expected: &[u64]) {
    let cluster = Cluster::start(&case.0).await.unwrap();
    let report = cluster.send(Load::new(REQUESTS, 4)).await.unwrap();
    assert_eq!(report.client_errors, REQUESTS, "{what}");
    let expected: Vec<_> = expected.iter().map(|each| each * REQUESTS).collect();
    assert_eq!(http::counts(&cluster).await, expected, "{what}");
}

#[tokio::test]
async fn one_culprit() {
    check("no ownership", chain("ABCD").off(), &[1, 2, 4, 8]).await;
    check("ownership", chain("ABCD"), &[1, 1, 1, 2]).await;
    check("three attempts, off", chain("ABCD").attempts("ABC", 3).off(), &[1, 3, 9, 27]).await;
    check("three attempts", chain("ABCD").attempts("ABC", 3), &[1, 1, 1, 3]).await;
    check("shield", chain("ABCD").shielded("D"), &[1, 1, 1, 1]).await;
    check("at least once", chain("ABC").attempts("B", 1), &[1, 2, 2]).await;
}

#[tokio::test]
async fn gaps_in_the_coverage() {
    check("C lost", chain("ABCD").context_lost("C"), &[1, 1, 2, 4]).await;
    check("two lost", chain("ABCDEF").context_lost("DE"), &[1, 1, 1, 2, 4, 8]).await;
    check("N retries blindly", chain("ABNCD").without_onus("N"), &[1, 1, 2, 4, 8]).await;
    check("{D}", chain("ABCD").without_onus("D"), &[1, 1, 1, 2]).await;
    check("{C,D}", chain("ABCD").without_onus("CD"), &[1, 1, 2, 4]).await;
    check("{A,D}", chain("ABCD").without_onus("AD"), &[1, 2, 2, 4]).await;
    check("{B,D}", chain("ABCD").without_onus("BD"), &[1, 2, 4, 8]).await;
}

#[tokio::test]
async fn observers_multiply_where_the_error_is_unclaimed() {
    for (observing, expected) in [
        ("A", [1, 2, 2, 4]),
        ("B", [1, 1, 2, 4]),
        ("C", [1, 1, 1, 2]),
        ("AB", [1, 2, 4, 8]),
        ("AC", [1, 2, 2, 4]),
        ("BC", [1, 1, 2, 4]),
        ("ABC", [1, 2, 4, 8]),
    ] {
        check(observing, chain("ABCD").observing(observing), &expected).await;
    }
}

#[tokio::test]
async fn lost_answers() {
    let no_answers = |names: &str| chain(names).silent(&names[1..]);
    check("all, off", no_answers("ABCDEF").off(), &[1, 2, 4, 8, 16, 32]).await;
    check("all", no_answers("ABCDEF"), &[1, 2, 3, 4, 5, 6]).await;
    check("C and D", chain("ABCD").silent("CD"), &[1, 1, 2, 3]).await;
    check("B, and C fails", chain("ABC").silent("B"), &[1, 2, 4]).await;
    let gaps = chain("ABCDEF").attempts("BD", 1);
    check("C, E, F; B and D do not retry", gaps.silent("CEF"), &[1, 2, 2, 3, 3, 4]).await;
    let lost = chain("ABCDE").context_lost("C");
    check("B, D, E; C lost", lost.silent("BDE"), &[1, 2, 4, 8, 12]).await;
    let claims = chain("ABCD").silent("D").all(|service| service.silent_claims = true);
    check("D, silent claims", claims, &[1, 1, 2, 3]).await;
    let hangs = chain("AB").each("B", |service| service.faults = vec![Fault::always(What::Hangs)]);
    let patience = Some(Duration::from_millis(250));
    let policy_waits = hangs.each("A", |service| service.callees[0].per_try_timeout = patience);
    check("B hangs, the policy's timeout", policy_waits, &[1, 2]).await;
    for (observing, expected) in [
        ("A", [1, 2, 3, 4]),
        ("B", [1, 2, 4, 5]),
        ("C", [1, 2, 3, 6]),
        ("AB", [1, 2, 4, 5]),
        ("AC", [1, 2, 3, 6]),
        ("BC", [1, 2, 4, 8]),
        ("ABC", [1, 2, 4, 8]),
    ] {
        check(observing, no_answers("ABCD").observing(observing), &expected).await;
    }
}

#[tokio::test]
async fn fan_out() {
    let [all, one] = [CallOrder::Parallel, CallOrder::Sequential];
    check("parallel, off", diamond(all).off(), &[1, 2, 4, 4, 16]).await;
    check("parallel", diamond(all), &[1, 1, 1, 1, 4]).await;
    check("sequential, off", diamond(one).off(), &[1, 2, 4, 0, 8]).await;
    check("sequential", diamond(one), &[1, 1, 1, 0, 2]).await;
}

#[tokio::test]
async fn own_errors_beside_those_of_callees() {
    let optional = Some(Annotation::Optional);
    let both = || chain("ABC").failing("B");
    check("fail-open B to C, both fail", both().tolerant("B", optional), &[1, 2, 4]).await;
    // Not known to be fail-open, so that C is blamed for what B did itself.
    check("unknown B to C, both fail", both().tolerant("B", None), &[1, 1, 2]).await;
}

#[tokio::test]
async fn loops_in_the_application_obey_nothing_and_are_counted() {
    let alone = || chain("ABCD").attempts("ABC", 1);
    check("all", alone().tries("ABC", 3), &[1, 3, 9, 27]).await;
    check("C", alone().tries("C", 3).attempts("AB", 2), &[1, 1, 1, 3]).await;
    check("around the layer", chain("ABCD").tries("C", 2), &[1, 1, 1, 3]).await;
}
