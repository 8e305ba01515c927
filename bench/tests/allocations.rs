//! Allocations are exact, so they are compared exactly.

use onus_bench::core::Edge;
use onus_bench::layers::{Retries, bare, layered, request, serve};
use onus_bench::{figures, grpc};

/// Allocations of `work`, with the first run out of the way: tables are filled on first use.
fn allocations(mut work: impl FnMut()) -> u64 {
    work();
    allocation_counter::measure(work).count_total
}

#[test]
fn a_core_decision_allocates_nothing() {
    let mut edge = Edge::new();
    let count = allocations(|| {
        edge.decide();
    });
    assert_eq!(count, figures::DECISION_ALLOCATIONS);
}

/// Allocations that the layers add to the bare stack on the success path.
fn added(retries: Retries) -> u64 {
    let mut stack = bare();
    let without = allocations(|| serve(&mut stack, request()));
    let mut stack = layered(retries);
    allocations(|| serve(&mut stack, request())) - without
}

#[test]
fn the_layers_allocate_once_where_the_hop_may_not_retry() {
    assert_eq!(added(Retries::None), figures::LAYERED_ALLOCATIONS);
}

#[test]
fn the_layers_allocate_little_where_the_hop_may_retry() {
    assert_eq!(added(Retries::Allowed), figures::LAYERED_RETRYABLE_ALLOCATIONS);
}

#[test]
fn the_layers_allocate_little_for_a_grpc_call() {
    let mut stack = grpc::bare();
    let without = allocations(|| serve(&mut stack, grpc::request()));
    let mut stack = grpc::layered();
    let with = allocations(|| serve(&mut stack, grpc::request()));
    assert_eq!(with - without, figures::GRPC_ALLOCATIONS);
}
