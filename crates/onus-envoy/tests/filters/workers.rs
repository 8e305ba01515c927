//! Workers that share nothing but bytes.

use std::sync::Arc;

use onus_envoy::{FilterConfig, Hub, InboundFilter, OutboundFilter, Service, Timestamp};

use super::{enforcing, headers, line};
use crate::cast::{Played, Table};

/// A worker: it has a service of its own, and the table in common with others.
struct Worker {
    service: Arc<Service>,
    table: Table,
}

impl Worker {
    fn new(table: &Table) -> Self {
        Self { service: enforcing(), table: table.clone() }
    }

    fn stream(&self, state: &str) -> Played {
        let mut stream = Played::request(headers(&[("tracestate", state)]));
        stream.cluster = "b".to_owned();
        stream.table = Some(self.table.clone());
        stream.now = self.table.now();
        stream
    }

    fn serve(&self) -> (InboundFilter, Played) {
        let mut filter = InboundFilter::new(self.service.clone());
        let mut stream = self.stream("");
        filter.on_request(&mut stream);
        (filter, stream)
    }

    /// Makes a call for the request with this state, which is answered like this.
    fn call(&self, state: &str, status: u16, claim: &str) {
        let mut filter = OutboundFilter::new(self.service.clone());
        let mut stream = self.stream(state);
        // Another call, and not a repeat of the one that failed.
        stream.path = if status == 200 { "/ok" } else { "/" }.to_owned();
        filter.on_request(&mut stream, true);
        stream.status = status;
        stream.response = headers(&[("onus-claim", claim)]);
        filter.on_response(&mut stream, true);
        filter.on_end(&stream);
    }
}

fn claim((mut filter, mut stream): (InboundFilter, Played)) -> String {
    stream.status = 500;
    filter.on_response(&mut stream, true);
    filter.on_end(&stream);
    line(&stream.response, "onus-claim").to_owned()
}

#[test]
fn a_claim_knows_what_other_workers_did() {
    // [correlate-1] [claim-2]
    let table = Table::default();
    let workers = [Worker::new(&table), Worker::new(&table)];
    for serving in 0..2 {
        let request = workers[serving].serve();
        let state = line(&request.1.request, "tracestate").to_owned();
        workers[1 - serving].call(&state, 503, "unclaimed;origin=\"z\";hops=0");
        workers[serving].call(&state, 200, "");
        let expected = "unclaimed;reason=suppressed;attempt=1;origin=\"z\";hops=1";
        assert_eq!(claim(request), expected);
        let own = workers[serving].serve();
        assert!(claim(own).starts_with("claimed;reason=own"));
        let lost = workers[serving].serve();
        workers[1 - serving].call("", 503, "unclaimed");
        assert!(claim(lost).starts_with("claimed;reason=context-lost"));
    }
}

#[test]
fn a_call_that_is_answered_is_written_down_once() {
    let table = Table::default();
    let worker = Worker::new(&table);
    let request = worker.serve();
    let mut stream = worker.stream(line(&request.1.request, "tracestate"));
    let mut filter = OutboundFilter::new(worker.service.clone());
    filter.on_request(&mut stream, true);
    stream.status = 200;
    filter.on_response(&mut stream, false);
    let written = table.writes();
    // Nobody shows the end of the body.
    filter.on_end(&stream);
    assert_eq!(table.writes(), written);
}

#[test]
fn a_worker_with_two_configurations_keeps_their_requests_apart() {
    // [correlate-1]
    let table = Table::default();
    let (mut worker, hub) = (Worker::new(&table), Hub::new());
    let config = |text: &str| {
        let config = FilterConfig::parse(text.as_bytes()).unwrap();
        hub.service(config, 1, Timestamp::ZERO).unwrap()
    };
    worker.service = config(r#"{"service": "a", "mode": "enforce"}"#);
    let older = worker.serve();
    worker.service = config(r#"{"service": "a", "mode": "enforce 100%"}"#);
    let newer = worker.serve();
    for request in [older, newer] {
        let state = line(&request.1.request, "tracestate").to_owned();
        worker.call(&state, 503, "unclaimed;origin=\"z\";hops=0");
        assert!(claim(request).starts_with("unclaimed;reason=suppressed"));
    }
}

#[test]
fn keys_are_as_many_as_requests_at_the_same_time() {
    // [fault-2]
    let table = Table::default();
    let workers = [Worker::new(&table), Worker::new(&table)];
    for n in 0..1_000 {
        let [one, two] = [0, 1].map(|at| workers[at].serve());
        let state = line(&one.1.request, "tracestate").to_owned();
        workers[n % 2].call(&state, 200, "");
        claim(one);
        claim(two);
    }
    let (keys, bytes) = table.size();
    // Two places of two keys each.
    assert!(keys <= 4, "{keys} keys");
    // Two records without calls.
    assert!(bytes <= 200, "{bytes} bytes");
}

#[test]
fn a_token_of_an_earlier_request_finds_nothing() {
    let table = Table::default();
    let worker = Worker::new(&table);
    let first = worker.serve();
    let state = line(&first.1.request, "tracestate").to_owned();
    claim(first);
    let second = worker.serve();
    worker.call(&state, 503, "unclaimed");
    assert!(claim(second).starts_with("claimed;reason=context-lost"), "not booked on another");
}
