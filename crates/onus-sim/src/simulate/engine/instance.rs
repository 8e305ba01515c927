//! One instance of a service: its workers, and who waits for them.

use std::collections::VecDeque;

use super::slab::Ref;

/// One instance of a service.
#[derive(Debug, Default)]
pub(super) struct Instance {
    /// Workers; none means no limit.
    pub(super) workers: Option<u32>,
    pub(super) busy: u32,
    /// Who waits, in the order of arrival; some may be gone.
    queue: VecDeque<Ref>,
    /// Who waits and is not gone.
    pub(super) waiting: u32,
}

impl Instance {
    pub(super) fn new(workers: Option<u32>) -> Self {
        Self { workers, ..Self::default() }
    }

    pub(super) fn has_free_worker(&self) -> bool {
        self.workers.is_none_or(|workers| self.busy < workers)
    }

    pub(super) fn wait(&mut self, request: Ref) {
        self.queue.push_back(request);
        self.waiting += 1;
    }

    /// The first in the queue, who may be gone.
    pub(super) fn next(&mut self) -> Option<Ref> {
        self.queue.pop_front()
    }
}
