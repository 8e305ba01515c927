//! Which CPU a process runs on: the proxy has one to itself.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the load and the backend run.
pub(crate) const LOAD: usize = 0;
/// Where the proxy runs.
pub(crate) const PROXY: usize = 1;

/// Keeps this thread, and the processes that it starts from now on, on one CPU.
///
/// Where there is no such CPU everything runs where it may: figures are then of proxies that share
/// one, which the environment of the report shows.
pub(crate) fn keep_to(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}

/// How many CPUs this process could use when it began.
pub(crate) fn available() -> usize {
    sched_getaffinity(None).map_or(0, |cpus| cpus.count() as usize)
}
