//! Times, for people: `cargo bench -p onus-bench --bench times`. They move with the machine; the
//! counts are what CI compares.

use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use onus_bench::classes::Classes;
use onus_bench::core::Edge;
use onus_bench::correlate::Crowd;
use onus_bench::layers::{Retries, bare, layered, request, serve};
use onus_bench::{grpc, storms};
use onus_graph::Ownership;

fn times(c: &mut Criterion) {
    let mut edge = Edge::new();
    c.bench_function("core/decision", |b| b.iter(|| black_box(edge.decide())));

    let mut stack = bare();
    c.bench_function("layers/bare", |b| {
        b.iter_batched(request, |request| serve(&mut stack, request), BatchSize::SmallInput);
    });
    for (name, retries) in
        [("layers/no retry", Retries::None), ("layers/may retry", Retries::Allowed)]
    {
        let mut stack = layered(retries);
        c.bench_function(name, |b| {
            b.iter_batched(request, |request| serve(&mut stack, request), BatchSize::SmallInput);
        });
    }

    let mut stack = grpc::bare();
    c.bench_function("grpc/bare", |b| {
        b.iter_batched(grpc::request, |call| serve(&mut stack, call), BatchSize::SmallInput);
    });
    let mut stack = grpc::layered();
    c.bench_function("grpc/no retry", |b| {
        b.iter_batched(grpc::request, |call| serve(&mut stack, call), BatchSize::SmallInput);
    });

    let graph = storms::layered(40_000, 250_000);
    let mut large = c.benchmark_group("storms");
    large.sample_size(10).bench_function("40,000 procedures, 250,000 edges", |b| {
        b.iter(|| black_box(graph.storms(Ownership::AsIs)));
    });
    large.finish();

    let mut crowd = Crowd::new();
    c.bench_function("correlator/token", |b| b.iter(|| black_box(crowd.by_token())));
    c.bench_function("correlator/id", |b| b.iter(|| black_box(crowd.by_id())));

    let mut classes = Classes::new();
    c.bench_function("class/resolved edge", |b| b.iter(|| black_box(classes.class())));
}

criterion_group!(benches, times);
criterion_main!(benches);
