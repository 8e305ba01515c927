//! What the attempts of one call leave for those after them, below the outbound layer.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What the attempts of one call leave for those after them.
///
/// It is for a pool or a balancer below the outbound layer, which has the instances of the callee
/// numbered as it likes: a retry may then go to another one. And it is where such a pool sees that it
/// has sent a request over a second connection before, which it may once for a call.
#[derive(Debug, Default)]
pub struct Trail {
    /// Zero where there is none; in the order in which they were asked.
    instances: [AtomicU64; INSTANCES_MAX],
    resent: AtomicBool,
}

/// Instances that are remembered; a call with more attempts has met enough of them.
const INSTANCES_MAX: usize = 8;

impl Trail {
    /// Notes that an attempt goes to this instance.
    pub fn note(&self, instance: NonZeroU64) {
        for place in &self.instances {
            let free =
                place.compare_exchange(0, instance.get(), Ordering::Relaxed, Ordering::Relaxed);
            match free {
                Ok(_) => return,
                Err(noted) if noted == instance.get() => return,
                Err(_) => {}
            }
        }
    }

    /// Whether an attempt went to this instance.
    #[must_use]
    pub fn leads_to(&self, instance: NonZeroU64) -> bool {
        self.instances.iter().any(|place| place.load(Ordering::Relaxed) == instance.get())
    }

    /// Whether the call may be sent over a second connection, because its callee has provably not
    /// worked on it; true once (attempt-11).
    #[must_use]
    pub fn take_resend(&self) -> bool {
        !self.resent.swap(true, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_are_remembered_and_a_resend_is_had_once() {
        let trail = Trail::default();
        let instance = |number| NonZeroU64::new(number).unwrap();
        assert!(!trail.leads_to(instance(7)));
        for number in [7, 7, 9] {
            trail.note(instance(number));
        }
        let met = (1..20).filter(|&number| trail.leads_to(instance(number))).collect::<Vec<_>>();
        assert_eq!(met, [7, 9]);
        (100..200).for_each(|number| trail.note(instance(number)));
        assert!(trail.leads_to(instance(105)) && !trail.leads_to(instance(106)), "it is bounded");
        assert!(trail.take_resend());
        assert!(!trail.take_resend());
    }
}
