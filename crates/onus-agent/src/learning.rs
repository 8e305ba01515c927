//! Local learning: once a minute the counts of the edges become evidence for their classes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use onus_core::Timestamp;
use onus_learn::{EdgeCounts, frozen};

use crate::agent::Agent;
use crate::edges::lock;

const MINUTE: Duration = Duration::from_secs(60);

/// When the next minute is over, and what was taken in before.
pub(crate) struct Schedule {
    /// In nanoseconds, so that requests can look at it without a lock.
    next: AtomicU64,
    learned: Mutex<Learned>,
}

#[derive(Default)]
struct Learned {
    /// The counts of each edge that were taken in, by the edge's number.
    edges: Vec<EdgeCounts>,
    /// Whether callees with a policy that were never called have been named.
    named_unused: bool,
}

impl Schedule {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            next: AtomicU64::new(now.saturating_add(MINUTE).as_nanos()),
            learned: Mutex::default(),
        }
    }

    /// Whether a minute is over; true for one caller only.
    fn is_due(&self, now: Timestamp) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        let after = now.saturating_add(MINUTE).as_nanos();
        now.as_nanos() >= next
            && self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Agent {
    /// Learns from the last minute, if it is over. Every call that starts does this; a host may do
    /// it too where none starts.
    pub fn tick(&self, now: Timestamp) {
        if self.schedule.is_due(now) {
            self.guarded(|| self.learn(now));
        }
    }

    fn learn(&self, now: Timestamp) {
        let mut learned = lock(&self.schedule.learned);
        let clean: HashMap<_, _> = self
            .procedures()
            .iter()
            .map(|served| (served.procedure, served.clean_since_last()))
            .collect();
        for (index, edge) in self.edges().enumerate() {
            if learned.edges.len() <= index {
                learned.edges.push(EdgeCounts::default());
            }
            let total = edge.lasting.counters.edge_counts();
            let minute = since(total, std::mem::replace(&mut learned.edges[index], total));
            // Failures that one part survives say nothing of the others.
            if edge.is_shared() {
                continue;
            }
            let caller = clean.get(&edge.key.caller).copied().unwrap_or_default();
            let frozen = frozen(caller.apart_from(&minute, edge.class()));
            let learned = edge.learn(|memory| memory.minute(minute, frozen, now), now);
            self.tell_learned(&edge, &learned);
        }
        if !std::mem::replace(&mut learned.named_unused, true) {
            self.tell_unused_policies();
        }
    }
}

fn since(total: EdgeCounts, before: EdgeCounts) -> EdgeCounts {
    EdgeCounts {
        calls: total.calls - before.calls,
        failures: total.failures - before.failures,
        isolated: total.isolated - before.isolated,
        isolated_both: total.isolated_both - before.isolated_both,
        joint: total.joint - before.joint,
        joint_both: total.joint_both - before.joint_both,
    }
}
