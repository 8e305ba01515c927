//! The core passes every vector.

use onus_conformance::{CoreHost, Vectors, run_all};

#[test]
fn core_passes_every_vector() {
    run_all(&mut CoreHost, &Vectors::shipped()).assert_all_seen();
}
