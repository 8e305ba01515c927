//! Who decides the class of an edge: operator, code, counts, nobody.

use onus_core::EdgeClass;

use crate::class::MeasuredClass;
use crate::measurement::Measurement;

/// What people have said about an edge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Declared {
    /// The operator's override.
    pub operator: Option<EdgeClass>,
    /// The annotation in the caller's code.
    pub annotation: Option<Annotation>,
}

impl Declared {
    /// The class that decisions use: operator override > annotation > learned > unknown.
    #[must_use]
    pub fn resolve(self, measured: Measurement) -> ClassFinding {
        let (class, by) = match (self.operator, self.annotation, measured.class.edge_class()) {
            (Some(class), _, _) => (class, Authority::Operator),
            (None, Some(annotation), _) => (annotation.edge_class(), Authority::Annotation),
            (None, None, EdgeClass::Unknown) => (EdgeClass::Unknown, Authority::Nobody),
            (None, None, class @ (EdgeClass::FailOpen | EdgeClass::FailClose)) => {
                (class, Authority::Learned)
            }
        };
        ClassFinding { class, by, measured }
    }
}

/// What the author of the caller says of a callee, in code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Annotation {
    /// The caller cannot answer without it: fail-close.
    Required,
    /// The caller answers without it: fail-open.
    Optional,
}

impl Annotation {
    /// The class it stands for.
    #[must_use]
    pub const fn edge_class(self) -> EdgeClass {
        match self {
            Self::Required => EdgeClass::FailClose,
            Self::Optional => EdgeClass::FailOpen,
        }
    }

    /// The spelling in code, files and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "required",
            Self::Optional => "optional",
        }
    }
}

/// Whose word a class is, from the highest to the lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Authority {
    /// The operator's override.
    Operator,
    /// The annotation in the caller's code.
    Annotation,
    /// The counts.
    Learned,
    /// Nobody's: the edge is unknown.
    Nobody,
}

impl Authority {
    /// The spelling in metrics, logs and files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Operator => "operator",
            Self::Annotation => "annotation",
            Self::Learned => "learned",
            Self::Nobody => "nobody",
        }
    }
}

/// The class of an edge, whose word it is, and what the counts say beside it.
///
/// Its `Display` is one line for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassFinding {
    /// The class that decisions use.
    pub class: EdgeClass,
    /// Who decided it.
    pub by: Authority,
    /// What was measured, also where somebody outranks it.
    pub measured: Measurement,
}

impl ClassFinding {
    /// The measured proof that an edge declared fail-open takes its caller down.
    ///
    /// The declaration is obeyed all the same; the host raises an event, because failures behind
    /// such an edge are retried once more by the callers of its caller. The other way round nothing
    /// is lost but the retries of coincidental errors, and nothing is raised.
    #[must_use]
    pub fn contradiction(&self) -> Option<Contradiction> {
        // Only a declaration can make the two differ.
        (self.class == EdgeClass::FailOpen && self.measured.class == MeasuredClass::FailClose)
            .then_some(Contradiction { by: self.by, measured: self.measured })
    }
}

/// An edge declared fail-open that is measured fail-close. Its `Display` is one line for people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contradiction {
    /// Who declared it.
    pub by: Authority,
    /// What contradicts it.
    pub measured: Measurement,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn measured(class: MeasuredClass) -> Measurement {
        let (k, n) = match class {
            MeasuredClass::FailClose => (95.0, 100.0),
            MeasuredClass::FailOpen => (5.0, 100.0),
            MeasuredClass::Unknown => (50.0, 100.0),
            MeasuredClass::NoData => (0.0, 0.0),
        };
        Measurement { class, k, n, held: Duration::ZERO }
    }

    #[test]
    fn the_highest_authority_decides() {
        // [class-9] [class-10]
        use Authority::{Annotation as Code, Learned, Nobody, Operator};
        use EdgeClass::{FailClose, FailOpen, Unknown};

        use super::Annotation::{Optional, Required};

        let (close, open) = (MeasuredClass::FailClose, MeasuredClass::FailOpen);
        let (unknown, none) = (MeasuredClass::Unknown, MeasuredClass::NoData);
        // Operator, annotation, measured → class, by, contradicted.
        for (operator, annotation, class, expected) in [
            (None, None, none, (Unknown, Nobody, false)),
            (None, None, unknown, (Unknown, Nobody, false)),
            (None, None, open, (FailOpen, Learned, false)),
            (None, None, close, (FailClose, Learned, false)),
            (None, Some(Optional), none, (FailOpen, Code, false)),
            (None, Some(Optional), open, (FailOpen, Code, false)),
            (None, Some(Optional), close, (FailOpen, Code, true)),
            (None, Some(Required), open, (FailClose, Code, false)),
            (None, Some(Required), close, (FailClose, Code, false)),
            (Some(FailOpen), None, none, (FailOpen, Operator, false)),
            (Some(FailOpen), None, unknown, (FailOpen, Operator, false)),
            (Some(FailOpen), None, close, (FailOpen, Operator, true)),
            (Some(FailOpen), Some(Required), close, (FailOpen, Operator, true)),
            (Some(FailClose), Some(Optional), open, (FailClose, Operator, false)),
            (Some(FailClose), Some(Optional), close, (FailClose, Operator, false)),
            // An operator may also say that nobody knows, and stop a learned exemption by it.
            (Some(Unknown), Some(Optional), open, (Unknown, Operator, false)),
        ] {
            let declared = Declared { operator, annotation };
            let finding = declared.resolve(measured(class));
            let contradicted = finding.contradiction().is_some();
            assert_eq!(
                (finding.class, finding.by, contradicted),
                expected,
                "{declared:?}, {class:?}"
            );
            assert_eq!(finding.measured, measured(class));
        }
    }

    #[test]
    fn a_contradiction_carries_the_evidence() {
        let declared = Declared { operator: Some(EdgeClass::FailOpen), annotation: None };
        let measured = measured(MeasuredClass::FailClose);
        let contradiction = declared.resolve(measured).contradiction();
        assert_eq!(contradiction, Some(Contradiction { by: Authority::Operator, measured }));
    }
}
