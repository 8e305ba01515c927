//! What the analysis hands back to the agents of a service.

use onus_core::EdgeClass;
use serde::{Deserialize, Serialize};

/// The classes of a service's edges, and what operators have ordered for it.
///
/// `ETag` is its version; an agent asks again with `If-None-Match`, and may wait for the next one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClassPage {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The service that the page is for: the caller of all edges.
    pub service: String,
    /// When the page was made by the clock of the analysis, in milliseconds since 1970: what ends
    /// is told by the same clock, so that a reader with another one ends it in time.
    #[serde(default)]
    pub at: u64,
    /// The edges about which anything is known.
    pub edges: Vec<EdgeClassEntry>,
    /// What operators have ordered for the service.
    #[serde(default)]
    pub switches: SwitchOrder,
}

/// One edge's class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// When an operator's word ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// What was learnt and holds when an operator's word has ended.
    #[serde(default, skip_serializing_if = "is_unknown")]
    pub beneath: Class,
    /// When the class became what it is, in milliseconds since 1970.
    #[serde(default)]
    pub since: u64,
    /// What was measured when it did.
    #[serde(default)]
    pub evidence: Evidence,
}

/// The evidence that a class was made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Evidence {
    /// Isolated failures of the callee that are remembered.
    pub n: f64,
    /// … that were failures of the caller too.
    pub k: f64,
}

/// The class of an edge (protocol §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub struct SwitchOrder {
    /// `off`, `observe`, `enforce`, or `enforce 25%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// When the mode ends by the clock of the analysis, in milliseconds since 1970; without this,
    /// when the order is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<u64>,
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

impl ClassPage {
    /// The page as it is at a later time by the clock of the analysis, without what has ended.
    pub fn end_by(&mut self, now: u64) {
        self.at = now;
        for entry in &mut self.edges {
            if entry.until.is_some_and(|until| until <= now) {
                (entry.class, entry.by, entry.until) = (entry.beneath, Word::Learned, None);
            }
        }
        let SwitchOrder { mode, mode_until, shield_left_seconds, shield_until, .. } =
            &mut self.switches;
        if mode_until.is_some_and(|until| until <= now) {
            (*mode, *mode_until) = (None, None);
        }
        match *shield_until {
            // Zero takes a shield down.
            None | Some(0) => {}
            Some(until) if until <= now => (*shield_left_seconds, *shield_until) = (None, None),
            // Rounded up: a shield with some of a second left still stands.
            Some(until) => *shield_left_seconds = Some((until - now).div_ceil(1000)),
        }
    }

    /// When something on the page ends next, in milliseconds since 1970.
    #[must_use]
    pub fn next_end(&self) -> Option<u64> {
        let edges = self.edges.iter().filter_map(|entry| entry.until);
        edges.chain(self.switches.mode_until).min()
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_unknown(class: &Class) -> bool {
    *class == Class::Unknown
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
    fn what_has_ended_is_off_the_page() {
        use Class::{FailClose, FailOpen, Unknown};

        let entry = |procedure: &str, until: Option<u64>, beneath| EdgeClassEntry {
            caller_procedure: String::new(),
            callee: "recs".to_owned(),
            procedure: procedure.to_owned(),
            class: FailClose,
            by: if until == Some(0) { Word::Learned } else { Word::Operator },
            until: until.filter(|&until| until > 0),
            beneath,
            since: 0,
            evidence: Evidence::default(),
        };
        let edges = vec![
            entry("/learnt", Some(0), Unknown),
            entry("/one", Some(1_000), FailOpen),
            entry("/two", Some(2_000), Unknown),
        ];
        let switches = SwitchOrder {
            mode: Some("off".to_owned()),
            mode_until: Some(1_500),
            shield_left_seconds: Some(2),
            shield_until: Some(2_000),
            ..SwitchOrder::default()
        };
        let page = ClassPage { at: 0, edges, switches, ..ClassPage::default() };
        for (now, classes, mode, shield, next) in [
            (999, [FailClose, FailClose, FailClose], Some("off"), Some(2), Some(1_000)),
            (1_000, [FailClose, FailOpen, FailClose], Some("off"), Some(1), Some(1_500)),
            (1_500, [FailClose, FailOpen, FailClose], None, Some(1), Some(2_000)),
            (2_000, [FailClose, FailOpen, Unknown], None, None, None),
        ] {
            let mut page = page.clone();
            page.end_by(now);
            assert_eq!(page.edges.iter().map(|it| it.class).collect::<Vec<_>>(), classes, "{now}");
            assert_eq!(page.switches.mode.as_deref(), mode, "{now}");
            assert_eq!(page.switches.shield_left_seconds, shield, "{now}");
            assert_eq!((page.next_end(), page.at), (next, now));
        }
    }

    #[test]
    fn words_of_a_newer_analysis_prove_nothing() {
        let read: Class = serde_json::from_str("\"fail-sideways\"").unwrap();
        assert_eq!(read, Class::Unknown);
    }
}
