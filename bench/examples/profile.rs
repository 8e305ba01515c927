//! Runs one kind of work many times, for a profiler: `profile WORK`, one of decision, bare,
//! layered, retryable, grpc-bare, grpc-layered, envoy-inbound, envoy-both and envoy-attempts.
//! Prints the time of the fastest round, which is what a quiet machine would show.

use std::time::{Duration, Instant};

use onus_bench::core::Edge;
use onus_bench::envoy::Filters;
use onus_bench::grpc;
use onus_bench::layers::{Retries, bare, layered, request, serve};

const ROUNDS: usize = 200;
const PER_ROUND: u32 = 500;

fn fastest(mut work: impl FnMut()) {
    let round = |_| {
        let start = now();
        for _ in 0..PER_ROUND {
            work();
        }
        now().saturating_duration_since(start)
    };
    let fastest = (0..ROUNDS).map(round).min().unwrap_or(Duration::ZERO);
    print(&format!("{} ns", fastest.as_nanos() / u128::from(PER_ROUND)));
}

fn main() {
    let what = std::env::args().nth(1).unwrap_or_default();
    match what.as_str() {
        "decision" => {
            let mut edge = Edge::new();
            fastest(|| {
                std::hint::black_box(edge.decide());
            });
        }
        "request" => fastest(|| {
            std::hint::black_box(request());
        }),
        "bare" => {
            let mut stack = bare();
            fastest(|| serve(&mut stack, request()));
        }
        "layered" => {
            let mut stack = layered(Retries::None);
            fastest(|| serve(&mut stack, request()));
        }
        "retryable" => {
            let mut stack = layered(Retries::Allowed);
            fastest(|| serve(&mut stack, request()));
        }
        "grpc-bare" => {
            let mut stack = grpc::bare();
            fastest(|| serve(&mut stack, grpc::request()));
        }
        "grpc-layered" => {
            let mut stack = grpc::layered();
            fastest(|| serve(&mut stack, grpc::request()));
        }
        "envoy-inbound" => {
            let mut filters = Filters::new("{}");
            fastest(|| filters.inbound());
        }
        "envoy-both" => {
            let mut filters = Filters::new("{}");
            fastest(|| filters.inbound_and_outbound());
        }
        "envoy-attempts" => {
            let mut filters = Filters::new(r#"{"backend": {"retry": {}}}"#);
            fastest(|| filters.inbound_and_outbound());
        }
        other => print(&format!("unknown work {other:?}")),
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::print_stdout, reason = "the result")]
fn print(line: &str) {
    println!("{line}");
}
