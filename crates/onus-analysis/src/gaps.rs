//! What is not in the figures, so that nobody takes a part for the whole: facts that a PromQL store
//! does not have, and callers that belong to other analyses.

use std::collections::BTreeSet;

use crate::book::Book;
use crate::promql::INSTANCE;

/// What this analysis would have to know and does not, in words.
pub(crate) fn missing(book: &Book) -> Vec<String> {
    let (mut edges, mut policies, mut calls) = (0_u64, 0_u64, 0_u64);
    for row in book.edges() {
        let counts = &row.counts;
        let requests = counts.ok_caller_ok + counts.ok_caller_failed + counts.failures();
        edges += 1;
        policies += u64::from(row.policy.unknown);
        calls += u64::from(requests > 0 && counts.calls() == 0);
    }
    let read_back = book.instances().filter(|(instance, _)| &***instance == INSTANCE);
    let modes: BTreeSet<_> = read_back
        .filter(|(_, row)| row.facts.mode.is_empty())
        .map(|(_, row)| row.service)
        .collect();
    let mut missing = Vec::new();
    if calls > 0 {
        missing.push(format!(
            "calls, retries and suppressions of {calls} of {edges} edges: the store has no onus_calls_total of them"
        ));
    }
    if policies > 0 {
        missing.push(format!(
            "retry policies of {policies} of {edges} edges, which count as one attempt: the store has no onus_retry_policy_info of them"
        ));
    }
    if !modes.is_empty() {
        missing.push(format!(
            "modes of {} services, which count as without Onus: the store has no onus_mode of them",
            modes.len()
        ));
    }
    missing
}
