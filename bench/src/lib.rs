//! What Onus costs: times for people, counts for CI.
