//! What was found by trying to break the agent: races between hosts' threads, tables smaller than
//! what was configured, header blocks without room.

use std::sync::{Arc, Barrier};
use std::thread;

use http::{HeaderMap, HeaderName, HeaderValue};
use onus_agent::correlator::Found;
use onus_agent::{Limits, RetryPolicy};

use crate::host::{Reply, Service, retries};

fn live(service: &Service) -> f64 {
    service.metrics().sum("onus_correlation_entries", &[("table", "requests")])
}

#[test]
fn a_request_that_is_over_is_not_filed() {
    let service = Service::enforcing(|_| {});
    let holders = Arc::strong_count(&service.agent);
    for cancelled in [false, true] {
        let request = service.request();
        let inbound = request.inbound.clone();
        if cancelled {
            inbound.cancelled(service.now());
        } else {
            request.ok();
        }
        let ids = [&b"trace"[..]].into_iter();
        assert_eq!(service.agent.file(&inbound, ids, service.now()), None);
        assert_eq!(live(&service), 0.0, "cancelled: {cancelled}");
    }
    assert_eq!(Arc::strong_count(&service.agent), holders, "nothing holds the agent for good");
}

#[test]
fn threads_that_file_a_request_at_once_file_it_once() {
    // [correlate-1]
    const THREADS: usize = 8;
    let service = Service::enforcing(|_| {});
    for round in 0..200 {
        let request = service.request();
        let start = Barrier::new(THREADS);
        let file = || {
            start.wait();
            let ids = [&b"trace"[..]].into_iter();
            service.agent.file(&request.inbound, ids, service.now()).unwrap()
        };
        let tokens: Vec<_> = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(file)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(tokens.iter().all(|token| *token == tokens[0]), "round {round}");
        let by_id = service.agent.inbound_by_id(b"trace");
        assert!(matches!(by_id, Found::One(_)), "round {round}: its own id is no doubt");
        drop(by_id);
        request.ok();
        assert_eq!(live(&service), 0.0, "round {round}");
    }
}

#[test]
fn what_was_configured_holds_however_small_the_table_of_names() {
    // [trust-2] [decide-5]
    let limits = Limits { names: 16, ..Limits::default() };
    let name = |n: usize| format!("callee-{n}");
    let service = Service::enforcing(|config| {
        config.limits = limits;
        for n in 0..40 {
            config.untrusted(name(n));
            config.retry(name(n), retries(2));
            config.retry_procedure(name(n), "GET /slow", RetryPolicy::attempts(1));
        }
    });
    for n in 0..40 {
        let request = service.request();
        let policy = *service.edge(Some(&request.inbound), &name(n), "/out").policy();
        assert!(!policy.trusted, "callee {n}");
        assert_eq!(policy.retry.map(|retry| retry.attempts()), Some(2), "callee {n}");
        let slow = *service.edge(Some(&request.inbound), &name(n), "/slow").policy();
        assert_eq!(slow.retry, None, "callee {n}");
        request.ok();
    }
    // There is still the room that was asked for.
    let of_strangers = (0..16).map(|n| service.agent.symbols().intern(&format!("stranger-{n}")));
    assert!(of_strangers.into_iter().all(|symbol| symbol != onus_agent::Symbol::OTHER));
}

/// A block that takes no further name.
fn full() -> HeaderMap {
    let mut headers = HeaderMap::new();
    for n in 0.. {
        let name = HeaderName::try_from(format!("x-{n}")).unwrap();
        if headers.try_insert(name, HeaderValue::from_static("")).is_err() {
            break;
        }
    }
    headers
}

#[test]
fn a_block_without_room_passes_as_it_is() {
    // [fault-1]
    let service = Service::enforcing(|config| config.retry("b", retries(2)));
    let request = service.request();
    request.call("b").play(&[Reply::Error("claimed"), Reply::Error("claimed")]);
    let mut headers = full();
    let before = headers.len();
    request.inbound.answer(true, true, &mut headers, service.now());
    assert_eq!(headers.len(), before);
    request.inbound.finished(true, service.now());

    let request = service.request_with(&[("onus-mark", "1"), ("grpc-timeout", "1S")]);
    let mut call = request.call("b");
    let mut headers = full();
    call.outbound.attempt_started(&mut headers, || service.now());
    assert_eq!(headers.len(), before);
    drop(call);
    request.ok();
}

#[test]
fn the_correlator_empties_whatever_threads_do() {
    // [correlate-1] [correlate-4]
    const THREADS: usize = 8;
    const ROUNDS: usize = 2_000;
    let limits = Limits { live_requests: 64, ..Limits::default() };
    let service = Service::enforcing(|config| config.limits = limits);
    let holders = Arc::strong_count(&service.agent);
    let work = |thread: usize| {
        let mut open = Vec::new();
        for round in 0..ROUNDS {
            let turn = round * THREADS + thread * 7;
            let request = service.request();
            let inbound = request.inbound.clone();
            let (trace, own) = (format!("t{}", turn % 30), format!("{thread}-{round}"));
            let ids = || [trace.as_bytes(), own.as_bytes(), b"all"].into_iter();
            if turn.is_multiple_of(5) {
                inbound.cancelled(service.now());
            }
            let token = service.agent.file(&inbound, ids(), service.now());
            if turn.is_multiple_of(3) {
                assert_eq!(service.agent.file(&inbound, ids(), service.now()), token);
            }
            if let Some(token) = token {
                let found = service.agent.inbound_of(token);
                service.call_for(found.as_ref(), "b").play(&[Reply::Error("claimed")]);
                let by_id = service.agent.inbound_by_id(own.as_bytes());
                assert!(!matches!(by_id, Found::Unknown), "{own}");
            }
            match turn % 4 {
                0 => inbound.cancelled(service.now()),
                1 => drop(request.error()),
                2 => drop(request.ok()),
                _ => open.push(inbound),
            }
            if open.len() > 10 {
                open.drain(..).for_each(|inbound| inbound.finished(false, service.now()));
            }
        }
        open.drain(..).for_each(|inbound| inbound.cancelled(service.now()));
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let work = &work;
            scope.spawn(move || work(thread));
        }
    });
    assert_eq!(live(&service), 0.0);
    assert_eq!(Arc::strong_count(&service.agent), holders);
    // What lingers goes bit by bit as requests come and go.
    service.pass(limits.linger * 2);
    for _ in 0..THREADS * ROUNDS {
        let request = service.request();
        service.agent.file(&request.inbound, std::iter::empty(), service.now());
        request.ok();
    }
    assert_eq!(service.metrics().sum("onus_correlation_entries", &[]), 0.0);
}
