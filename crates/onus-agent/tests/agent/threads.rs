//! Many threads at once come to what one thread comes to.

use std::thread;

use onus_agent::RetryPolicy;

use crate::host::{Reply, Service};

const THREADS: usize = 64;
const REQUESTS: usize = 50;

fn service() -> Service {
    let policy = RetryPolicy::articles(2).budget_percent(10).budget_min_per_second(0).no_probes();
    Service::enforcing(|config| config.retry("b", policy))
}

/// What one thread does: requests for one of four procedures, with a call that fails and one that
/// does not.
fn work(service: &Service, thread: usize) {
    for n in 0..REQUESTS {
        let route = ["/1", "/2", "/3", "/4"][(thread + n) % 4];
        let request = service.request_for("/in", &[]);
        let id = format!("{thread}-{n}");
        let ids = [id.as_bytes()].into_iter();
        let token = service.agent.file(&request.inbound, ids, service.now()).unwrap();
        let found = service.agent.inbound_of(token).unwrap();
        service.call_for(Some(&found), "b").play_while_retried(&[Reply::Error("claimed"); 2]);
        service.request_for(route, &[]).call("c").play(&[Reply::Ok]);
        request.error();
    }
}

/// The exposition, line by line in an order that does not depend on who came first.
fn lines(service: &Service) -> Vec<String> {
    let mut lines: Vec<_> = service.metrics().0.lines().map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn threads_count_like_one_thread() {
    // [budget-2] [budget-4] [correlate-1]
    let sequential = service();
    for thread in 0..THREADS {
        work(&sequential, thread);
    }
    let retries = sequential.metrics().sum("onus_retries_total", &[("verdict", "made")]);
    assert_eq!(retries, (THREADS * REQUESTS / 10) as f64);

    let parallel = service();
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let parallel = &parallel;
            scope.spawn(move || work(parallel, thread));
        }
    });
    assert_eq!(lines(&parallel), lines(&sequential));
}
