//! The checked-in counts. CI fails where a count is more than 5 % above its figure.
//!
//! Raising one is a commit of its own that says why. The counts are those of [`TOOLCHAIN`]; with
//! another one the instruction counts say little and are only printed.

/// The toolchain that the figures are of.
pub const TOOLCHAIN: &str = "1.95.0";

/// Whether the figures are of the toolchain that is here.
#[must_use]
pub fn are_of_this_toolchain() -> bool {
    let rustc = std::process::Command::new("rustc").arg("--version").output();
    let named = format!("rustc {TOOLCHAIN} ");
    rustc.is_ok_and(|output| output.stdout.starts_with(named.as_bytes()))
}

/// Instructions of one core decision.
pub const DECISION: u64 = 705;
/// Instructions of the bare stack.
pub const BARE: u64 = 1_381;
/// Instructions of the stack with both layers where the hop may not retry.
pub const LAYERED: u64 = 4_753;
/// Instructions of the stack with both layers where the hop may retry.
pub const LAYERED_RETRYABLE: u64 = 6_149;
/// Instructions of a unary gRPC call through the stack with both layers where the hop may not retry.
pub const GRPC: u64 = 8_377;
/// Instructions of a lookup by token.
pub const BY_TOKEN: u64 = 51;
/// Instructions of a lookup by id.
pub const BY_ID: u64 = 336;

/// Allocations of one core decision.
pub const DECISION_ALLOCATIONS: u64 = 0;
/// Allocations that both layers add where the hop may not retry.
pub const LAYERED_ALLOCATIONS: u64 = 1;
/// Allocations that both layers add to a unary gRPC call where the hop may not retry.
pub const GRPC_ALLOCATIONS: u64 = 2;
/// Allocations that both layers add where the hop may retry.
pub const LAYERED_RETRYABLE_ALLOCATIONS: u64 = 4;
