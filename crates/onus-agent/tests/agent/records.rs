//! A request that one worker serves and another makes calls for, when they share nothing but bytes.

use onus_agent::correlator::Token;
use onus_agent::{Inbound, MethodKind, Relay};

use crate::host::{Reply, Request, Service, Target, line, retries};

/// Two workers of one service, and the record of a request that the first one serves.
struct Workers {
    serving: Service,
    calling: Service,
}

impl Workers {
    fn new() -> Self {
        let worker = || Service::enforcing(|config| config.retry("b", retries(2)));
        // So that names have other numbers with the second one.
        let calling = worker();
        let _ = calling.agent.symbols().intern("zzz");
        calling.edge(None, "zzz", "/zzz");
        Self { serving: worker(), calling }
    }

    fn arrive(&self, lines: &[(&str, &str)]) -> (Request<'_>, Token, Vec<u8>) {
        let request = self.serving.request_with(lines);
        let ids = std::iter::empty();
        let token = self.serving.agent.file(&request.inbound, ids, self.serving.now()).unwrap();
        let record = request.inbound.record(token);
        (request, token, record)
    }

    fn taken(&self, record: &[u8], token: Token) -> Inbound {
        self.calling.agent.inbound_of_record(record, token).expect("the record is that request's")
    }
}

/// Puts what the call came to into the record.
fn put(relay: &mut Relay, record: &mut Vec<u8>) {
    let (with, placed) = relay.put(record).expect("there is room");
    *record = with;
    relay.placed(placed);
}

#[test]
fn a_claim_knows_of_the_calls_that_another_worker_made() {
    // [claim-3] [claim-5] [claim-6] [claim-10]
    let own = "claimed;reason=own;attempt=2;origin=\"a\";hops=0";
    for (calls, claim) in [
        (&[][..], own),
        (&[("c", &[Reply::Ok][..])], own),
        (
            &[("c", &[Reply::Error("claimed")])],
            "claimed;reason=handoff;attempt=2;origin=\"c\";hops=1",
        ),
        (
            &[("c", &[Reply::Error("unclaimed;origin=\"z\";hops=3")])],
            "unclaimed;reason=suppressed;attempt=2;origin=\"z\";hops=4",
        ),
        (
            &[("c", &[Reply::Ok]), ("b", &[Reply::Error("claimed"), Reply::Error("claimed")])],
            "unclaimed;reason=exhausted;attempt=2;origin=\"b\";hops=1",
        ),
        (
            &[("c", &[Reply::Hang])],
            "claimed;kind=silent;reason=handoff;attempt=2;origin=\"c\";hops=1",
        ),
    ] {
        let workers = Workers::new();
        let (request, token, mut record) = workers.arrive(&[("onus-attempt", "2")]);
        for (callee, replies) in calls {
            let inbound = workers.taken(&record, token);
            let call = workers.calling.call_for(Some(&inbound), callee);
            let mut relay = call.outbound.relay().expect("it is tied");
            put(&mut relay, &mut record);
            call.play(replies);
            put(&mut relay, &mut record);
        }
        assert!(request.inbound.adopt(&record));
        assert_eq!(request.claim(), claim, "{calls:?}");
    }
}

#[test]
fn mark_and_mode_go_with_the_record() {
    // [mark-2]
    let workers = Workers::new();
    let (_request, token, record) = workers.arrive(&[("onus-mark", "1")]);
    let mut call = workers.calling.call_for(Some(&workers.taken(&record, token)), "c");
    assert_eq!(line(&call.send(), "onus-mark"), "1");
    assert_eq!(call.outbound.arm(), onus_agent::Arm::Enforce);
}

#[test]
fn a_repeat_is_recognised_whoever_made_the_call_before() {
    // [attempt-6] [attempt-13]
    let grpc = Target { method: MethodKind::Grpc, body: None, ..Target::GET };
    let numbered = Target { carries: &[("grpc-previous-rpc-attempts", "1")], ..grpc };
    for (first, again) in [(Target::GET, Target::GET), (grpc, numbered)] {
        let workers = Workers::new();
        let (request, token, mut record) = workers.arrive(&[]);
        for target in [first, again] {
            let inbound = workers.taken(&record, token);
            let call = workers.calling.call(Some(&inbound), "c", &target);
            let mut relay = call.outbound.relay().unwrap();
            call.play(&[Reply::Error("claimed")]);
            put(&mut relay, &mut record);
        }
        assert!(request.inbound.adopt(&record));
        let claim = request.claim();
        assert_eq!(claim, "unclaimed;reason=not-configured;attempt=1;origin=\"c\";hops=1");
    }
    // A number that another worker read is not read again as one of a retry.
    let workers = Workers::new();
    let (_request, token, mut record) = workers.arrive(&[]);
    for _ in 0..2 {
        let inbound = workers.taken(&record, token);
        let call = workers.calling.call(Some(&inbound), "c", &numbered);
        let mut relay = call.outbound.relay().unwrap();
        call.play(&[Reply::Error("claimed")]);
        put(&mut relay, &mut record);
    }
    assert_eq!(workers.calling.metrics().sum("onus_repeats_total", &[]), 0.0);
}

#[test]
fn calls_at_the_same_time_keep_their_places() {
    let workers = Workers::new();
    let (request, token, mut record) = workers.arrive(&[]);
    let start = |callee| {
        let call = workers.calling.call_for(Some(&workers.taken(&record, token)), callee);
        let relay = call.outbound.relay().unwrap();
        (call, relay)
    };
    let (first, mut first_relay) = start("c");
    let (second, mut second_relay) = start("d");
    put(&mut first_relay, &mut record);
    put(&mut second_relay, &mut record);
    first.play(&[Reply::Ok]);
    second.play(&[Reply::Error("unclaimed")]);
    put(&mut second_relay, &mut record);
    put(&mut first_relay, &mut record);
    assert!(request.inbound.adopt(&record));
    let claim = request.claim();
    assert_eq!(claim, "unclaimed;reason=suppressed;attempt=1;origin=\"d\";hops=1");
}

#[test]
fn calls_that_are_tied_nowhere_are_known_elsewhere() {
    // [claim-2]
    let workers = Workers::new();
    let (request, _, record) = workers.arrive(&[]);
    request.inbound.untied_elsewhere();
    assert!(request.inbound.adopt(&record));
    assert_eq!(request.claim(), "claimed;reason=context-lost;attempt=1;origin=\"a\";hops=0");
}

#[test]
fn another_record_is_none_of_the_request_and_a_full_one_takes_no_call() {
    // [fault-2]
    let workers = Workers::new();
    let (_first, first_token, first_record) = workers.arrive(&[]);
    let (_second, second_token, mut record) = workers.arrive(&[]);
    let taken = |record: &[u8], token| workers.calling.agent.inbound_of_record(record, token);
    assert!(taken(&first_record, second_token).is_none());
    assert!(taken(&record, first_token).is_none());
    for cut in 0..record.len() {
        assert!(taken(&record[..cut], second_token).is_none(), "{cut} bytes");
    }
    let mut calls = 0;
    while let Some(inbound) = taken(&record, second_token) {
        let call = workers.calling.call_for(Some(&inbound), "c");
        put(&mut call.outbound.relay().unwrap(), &mut record);
        calls += 1;
    }
    assert_eq!(calls, 256);
    assert!(record.len() < 32 * 1024, "{} bytes", record.len());
}
