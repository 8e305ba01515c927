//! The culprit paths of a failed request: was a retry possible on them, and was one made?

/// What is known of the culprit paths below an error, and of what happened beside them.
///
/// A culprit path leads from a failed call down to a node that failed by itself or whose answer
/// was lost, along the final failures that the nodes on it did not survive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Paths {
    /// Some path has no hop that can retry.
    incapable: bool,
    /// Some path has a hop that can retry, and none that did.
    missed: bool,
    /// Some path has a hop that retried.
    retried: bool,
    /// What happened at the nodes on the paths.
    pub(crate) beside: Beside,
}

/// Known losses: events that may keep a retry from being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beside(u8);

impl Beside {
    /// A budget, a gate, a pushback or the mark refused a retry.
    pub(crate) const REFUSAL: Self = Self(1);
    /// A tolerated failure on an edge not known to be fail-open came before an own error.
    pub(crate) const SWALLOWED_OWN: Self = Self(2);
    /// The same before the failure of another call.
    pub(crate) const SWALLOWED_OTHER: Self = Self(4);
    /// A node failed by several calls.
    pub(crate) const SEVERAL: Self = Self(8);
    /// How many sets of events there are.
    const SETS: u8 = 16;

    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl Paths {
    /// The path that ends at a node which failed by itself.
    pub(crate) const CULPRIT: Self =
        Self { incapable: true, missed: false, retried: false, beside: Beside(0) };

    /// The same paths seen from one hop further up.
    pub(crate) fn through(self, hop: Hop) -> Self {
        let any = self.incapable | self.missed | self.retried;
        let same = Self { ..self };
        match hop {
            Hop::Retried => Self { incapable: false, missed: false, retried: any, ..same },
            Hop::Capable => Self { incapable: false, missed: self.incapable | self.missed, ..same },
            Hop::Incapable => same,
        }
    }

    /// These paths and others, below the same node.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            incapable: self.incapable | other.incapable,
            missed: self.missed | other.missed,
            retried: self.retried | other.retried,
            beside: self.beside.with(other.beside),
        }
    }
}

/// What a hop of a path did about a final failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hop {
    /// It cannot retry.
    Incapable,
    /// It can, and did not.
    Capable,
    /// It did.
    Retried,
}

/// The failures of a trace that nobody above could retry any more: how often at-least-once was
/// broken, by what happened beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Settled {
    weak: u16,
    strong: u16,
}

impl Settled {
    /// A failure arrived where it ends: at the root's caller, or at a node that survives it.
    pub(crate) fn add(&mut self, paths: Paths) {
        if paths.missed {
            self.strong |= 1 << paths.beside.0;
            if !paths.retried {
                self.weak |= 1 << paths.beside.0;
            }
        }
    }

    /// Whether a failure without these events beside it had a path that could be retried, and no
    /// path was.
    pub(crate) fn breaks_weakly(self, without: Beside) -> bool {
        without_events(self.weak, without)
    }

    /// Whether a failure without these events beside it had a path that could be retried and was
    /// not.
    pub(crate) fn breaks_strongly(self, without: Beside) -> bool {
        without_events(self.strong, without)
    }
}

fn without_events(broken: u16, without: Beside) -> bool {
    (0..Beside::SETS).any(|set| broken & (1 << set) != 0 && set & without.0 == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_least_once_by_the_hops_of_a_path() {
        // From the culprit up; weak and strong broken.
        for (hops, broken) in [
            (&[Hop::Incapable][..], false),
            (&[Hop::Capable], true),
            (&[Hop::Capable, Hop::Retried], false),
            (&[Hop::Retried, Hop::Capable], false),
            (&[Hop::Incapable, Hop::Capable, Hop::Incapable], true),
        ] {
            let paths = hops.iter().fold(Paths::CULPRIT, |paths, &hop| paths.through(hop));
            let mut settled = Settled::default();
            settled.add(paths);
            let none = Beside::default();
            assert_eq!(settled.breaks_weakly(none), broken, "{hops:?}");
            assert_eq!(settled.breaks_strongly(none), broken, "{hops:?}");
        }
    }

    #[test]
    fn one_retried_path_is_enough_for_the_weak_form() {
        let retried = Paths::CULPRIT.through(Hop::Retried);
        let missed = Paths::CULPRIT.through(Hop::Capable);
        let mut settled = Settled::default();
        settled.add(retried.and(missed));
        assert!(!settled.breaks_weakly(Beside::default()));
        assert!(settled.breaks_strongly(Beside::default()));
    }

    #[test]
    fn events_beside_excuse() {
        let mut paths = Paths::CULPRIT.through(Hop::Capable);
        paths.beside = Beside::REFUSAL;
        let mut settled = Settled::default();
        settled.add(paths);
        assert!(settled.breaks_weakly(Beside::default()));
        assert!(settled.breaks_weakly(Beside::SEVERAL));
        assert!(!settled.breaks_weakly(Beside::REFUSAL.with(Beside::SEVERAL)));
    }
}
