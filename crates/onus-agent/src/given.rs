//! Classes that the dependency analysis hands back: what it has learnt from all processes of a
//! service, and what operators have said to it.

use std::time::Duration;

use onus_core::{EdgeClass, Timestamp};
use onus_learn::{ClassFinding, Declared, Estimator, MeasuredClass, Measurement};

use crate::agent::Agent;
use crate::totals::EdgeName;

/// The class of an edge as the analysis knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GivenClass {
    /// The class.
    pub class: EdgeClass,
    /// Whether an operator has said so, and nobody counted it.
    pub by_operator: bool,
    /// Isolated failures of the callee that were failures of the caller too.
    pub k: f64,
    /// Isolated failures of the callee.
    pub n: f64,
    /// For how long the class has been held.
    pub held: Duration,
}

impl GivenClass {
    fn measurement(&self) -> Measurement {
        let class = match self.class {
            EdgeClass::FailClose => MeasuredClass::FailClose,
            EdgeClass::FailOpen => MeasuredClass::FailOpen,
            EdgeClass::Unknown => MeasuredClass::Unknown,
        };
        Measurement { class, k: self.k, n: self.n, held: self.held }
    }
}

/// All that an edge's class follows from.
#[derive(Debug)]
pub(crate) struct Learning {
    /// What this process has learnt by itself.
    pub(crate) own: Estimator,
    pub(crate) given: Option<GivenClass>,
}

impl Learning {
    pub(crate) fn new(given: Option<GivenClass>, now: Timestamp) -> Self {
        Self { own: Estimator::new(now), given }
    }

    /// The class that decisions use, where this was said of the edge.
    ///
    /// An override in the analysis has an end and a record, and holds without a restart: it wins
    /// over one in this service's own configuration, as the analysis' mode does. A class that the analysis has learnt is that of all processes; where it knows none, as after
    /// it has lost its memory, what this process has seen goes on to hold.
    pub(crate) fn finding(&self, declared: Declared, now: Timestamp) -> ClassFinding {
        let own = self.own.measure(now);
        match self.given {
            Some(given) if given.by_operator => {
                Declared { operator: Some(given.class), ..declared }.resolve(own)
            }
            Some(given) if given.class != EdgeClass::Unknown => {
                declared.resolve(given.measurement())
            }
            Some(_) | None => declared.resolve(own),
        }
    }
}

impl Agent {
    /// Takes over the classes that the analysis hands back; what it said before is forgotten. No
    /// more are kept than the agent keeps edges apart.
    pub fn follow_analysis(
        &self,
        classes: impl IntoIterator<Item = (EdgeName, GivenClass)>,
        now: Timestamp,
    ) {
        self.edge_table().give(classes);
        for edge in self.edges() {
            let given = self.edge_table().given(&edge.name(self.symbols()));
            let learned = edge.relearn(|learning| learning.given = given, now);
            self.tell_learned(&edge, &learned);
        }
    }
}

#[cfg(test)]
mod tests {
    use onus_learn::{Annotation, Authority, EdgeCounts};

    use super::*;

    #[test]
    fn an_override_of_the_analysis_wins_and_proof_beats_its_absence() {
        // [class-9] [class-12]
        use EdgeClass::{FailClose, FailOpen, Unknown};
        let given = |class, by_operator| {
            Some(GivenClass { class, by_operator, k: 0.0, n: 20.0, held: Duration::ZERO })
        };
        let none = Declared::default();
        let operator = Declared { operator: Some(FailClose), ..none };
        let optional = Declared { annotation: Some(Annotation::Optional), ..none };
        // The process itself has learnt fail-close.
        for (declared, given, class, by) in [
            (none, None, FailClose, Authority::Learned),
            (none, given(Unknown, false), FailClose, Authority::Learned),
            (none, given(FailOpen, false), FailOpen, Authority::Learned),
            (none, given(FailOpen, true), FailOpen, Authority::Operator),
            (none, given(Unknown, true), Unknown, Authority::Operator),
            (optional, given(FailClose, false), FailOpen, Authority::Annotation),
            (optional, given(FailClose, true), FailClose, Authority::Operator),
            (operator, given(FailOpen, true), FailOpen, Authority::Operator),
            (operator, given(FailOpen, false), FailClose, Authority::Operator),
            (operator, None, FailClose, Authority::Operator),
        ] {
            let mut learning = Learning::new(given, Timestamp::ZERO);
            let counts =
                EdgeCounts { failures: 20, isolated: 20, isolated_both: 20, ..Default::default() };
            learning.own.minute(counts, false, Timestamp::ZERO);
            let finding = learning.finding(declared, Timestamp::ZERO);
            assert_eq!((finding.class, finding.by), (class, by), "{declared:?} {given:?}");
        }
    }
}
