//! Instructions under callgrind, for CI: they repeat, times do not. Each benchmark runs its work a
//! hundred times and fails where that takes more than 5 % above the checked-in figure. A stack is
//! given back: to take its tables down is no part of a request.

#![expect(
    missing_docs,
    unused_qualifications,
    reason = "the macros of gungraun write code without docs and with full paths"
)]

use std::hint::black_box;

use gungraun::{
    Callgrind, EventKind, LibraryBenchmarkConfig, library_benchmark, library_benchmark_group, main,
};
use onus_bench::core::Edge;
use onus_bench::correlate::Crowd;
use onus_bench::layers::{Bare, Layered, Retries, bare, layered, request, serve};
use onus_bench::{figures, grpc};

/// Often enough that tables which grow, and hashes that differ by process, do not show.
const REPEATS: u64 = 100;

/// Fails above `figure` and 5 %, where the figures are of this toolchain.
fn at_most(figure: u64) -> LibraryBenchmarkConfig {
    let limit = figure * REPEATS * 105 / 100;
    let mut callgrind = Callgrind::default();
    if figures::are_of_this_toolchain() {
        callgrind.hard_limits([(EventKind::Ir, limit)]).fail_fast(false);
    }
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

/// A stack whose tables are filled.
fn warm_layers(retries: Retries) -> Layered {
    let mut stack = layered(retries);
    serve(&mut stack, request());
    stack
}

fn warm_edge() -> Edge {
    let mut edge = Edge::new();
    edge.decide();
    edge
}

#[library_benchmark(config = at_most(figures::DECISION))]
#[bench::warm(warm_edge())]
fn decision(mut edge: Edge) {
    for _ in 0..REPEATS {
        black_box(edge.decide());
    }
}

#[library_benchmark(config = at_most(figures::BARE))]
#[bench::warm(bare())]
fn bare_stack(mut stack: Bare) {
    for _ in 0..REPEATS {
        serve(&mut stack, request());
    }
}

#[library_benchmark(config = at_most(figures::LAYERED))]
#[bench::warm(warm_layers(Retries::None))]
fn layers_no_retry(mut stack: Layered) -> Layered {
    for _ in 0..REPEATS {
        serve(&mut stack, request());
    }
    stack
}

#[library_benchmark(config = at_most(figures::LAYERED_RETRYABLE))]
#[bench::warm(warm_layers(Retries::Allowed))]
fn layers_may_retry(mut stack: Layered) -> Layered {
    for _ in 0..REPEATS {
        serve(&mut stack, request());
    }
    stack
}

/// A gRPC stack whose tables are filled.
fn warm_grpc() -> grpc::Layered {
    let mut stack = grpc::layered();
    serve(&mut stack, grpc::request());
    stack
}

#[library_benchmark(config = at_most(figures::GRPC))]
#[bench::warm(warm_grpc())]
fn layers_grpc(mut stack: grpc::Layered) -> grpc::Layered {
    for _ in 0..REPEATS {
        serve(&mut stack, grpc::request());
    }
    stack
}

#[library_benchmark(config = at_most(figures::BY_TOKEN))]
#[bench::crowd(Crowd::new())]
fn correlator_token(mut crowd: Crowd) {
    for _ in 0..REPEATS {
        black_box(crowd.by_token());
    }
}

#[library_benchmark(config = at_most(figures::BY_ID))]
#[bench::crowd(Crowd::new())]
fn correlator_id(mut crowd: Crowd) {
    for _ in 0..REPEATS {
        black_box(crowd.by_id());
    }
}

library_benchmark_group!(
    name = counts,
    benchmarks = [
        decision,
        bare_stack,
        layers_no_retry,
        layers_may_retry,
        layers_grpc,
        correlator_token,
        correlator_id,
    ]
);

main!(library_benchmark_groups = counts);
