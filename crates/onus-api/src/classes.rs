//! What the analysis hands back to the agents of a service.

use onus_core::EdgeClass;
use serde::{Deserialize, Serialize};

/// The classes of a service's edges, and what operators have ordered for it.
///
/// `ETag` is its version; an agent asks again with `If-None-Match`, and may wait for the next one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassPage {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The service that the page is for: the caller of all edges.
    pub service: String,
    /// The edges about which anything is known.
    pub edges: Vec<EdgeClassEntry>,
    /// What operators have ordered for the service.
    #[serde(default)]
    pub switches: SwitchOrder,
}

/// One edge's class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EdgeClassEntry {
    /// The procedure that is served.
    #[serde(default)]
    pub caller_procedure: String,
    /// The service that is called.
    pub callee: String,
    /// The procedure that is called.
    pub procedure: String,
    /// The class.
    pub class: Class,
    /// Whose word it is.
    pub by: Word,
    /// When the class became what it is, in milliseconds since 1970.
    #[serde(default)]
    pub since: u64,
    /// What was measured when it did.
    #[serde(default)]
    pub evidence: Evidence,
}

/// The evidence that a class was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    /// Isolated failures of the callee that are remembered.
    pub n: f64,
    /// … that were failures of the caller too.
    pub k: f64,
}

/// The class of an edge (protocol §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// The callee's failure fails the caller.
    FailClose,
    /// The caller survives it.
    FailOpen,
    /// Not known; what a newer analysis says and this reader does not know counts as this.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Whose word a class is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// An operator's, until it expires.
    Operator,
    /// The counts'.
    #[default]
    #[serde(other)]
    Learned,
}

/// What operators have ordered for a service; nothing unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SwitchOrder {
    /// `off`, `observe`, `enforce`, or `enforce 25%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How much longer the shield holds from the moment of this answer; zero takes one down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield_left_seconds: Option<u64>,
    /// When the shield ends by the clock of the analysis, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield_until: Option<u64>,
    /// Who ordered it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// Why.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Class {
    /// The class of this name, as people type it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::FailClose, Self::FailOpen, Self::Unknown]
            .into_iter()
            .find(|class| class.as_str() == name)
    }

    /// The spelling everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::FailClose => EdgeClass::FailClose.as_str(),
            Self::FailOpen => EdgeClass::FailOpen.as_str(),
            Self::Unknown => EdgeClass::Unknown.as_str(),
        }
    }
}

impl From<EdgeClass> for Class {
    fn from(class: EdgeClass) -> Self {
        match class {
            EdgeClass::FailClose => Self::FailClose,
            EdgeClass::FailOpen => Self::FailOpen,
            EdgeClass::Unknown => Self::Unknown,
        }
    }
}

impl From<Class> for EdgeClass {
    fn from(class: Class) -> Self {
        match class {
            Class::FailClose => Self::FailClose,
            Class::FailOpen => Self::FailOpen,
            Class::Unknown => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_spelt_as_everywhere() {
        for class in [EdgeClass::FailClose, EdgeClass::FailOpen, EdgeClass::Unknown] {
            let text = serde_json::to_value(Class::from(class)).unwrap();
            assert_eq!(text, class.as_str());
            let read: Class = serde_json::from_value(text).unwrap();
            assert_eq!(EdgeClass::from(read), class);
        }
    }

    #[test]
    fn words_of_a_newer_analysis_prove_nothing() {
        let read: Class = serde_json::from_str("\"fail-sideways\"").unwrap();
        assert_eq!(read, Class::Unknown);
    }
}
