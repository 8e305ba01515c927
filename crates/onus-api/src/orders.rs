//! What operators say: classes of edges, modes and shields, and the record of who said what.

use serde::{Deserialize, Serialize};

use crate::classes::Class;

/// An operator's word on the class of edges, until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// Its name: the same for the same edges.
    pub id: String,
    /// The service that calls.
    pub caller: String,
    /// The procedure that it serves; all of them where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_procedure: Option<String>,
    /// The service that is called.
    pub callee: String,
    /// The procedure that is called; all of them where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub procedure: Option<String>,
    /// The class.
    pub class: Class,
    /// Who answers for it.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Where it is written down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket: String,
    /// When it was said, in milliseconds since 1970.
    pub made: u64,
    /// When it ends, in milliseconds since 1970.
    pub expires: u64,
}

/// An override that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverrideRequest {
    /// The service that calls.
    pub caller: String,
    /// The procedure that it serves; all of them where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_procedure: Option<String>,
    /// The service that is called.
    pub callee: String,
    /// The procedure that is called; all of them where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub procedure: Option<String>,
    /// `fail-close`, `fail-open` or `unknown`.
    pub class: String,
    /// Who answers for it.
    pub owner: String,
    /// Why.
    pub reason: String,
    /// Where it is written down.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub ticket: String,
    /// How long it holds, in seconds.
    pub for_seconds: u64,
}

/// What operators have said of a service; nothing unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// The service; `*` for all of them, over which a service's own order wins.
    pub service: String,
    /// `off`, `observe`, `enforce`, or `enforce 25%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// When the mode ends; `None` for no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_until: Option<u64>,
    /// When the shield ends, in milliseconds since 1970; zero takes one down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shield_until: Option<u64>,
    /// Who said so.
    pub who: String,
    /// Why.
    pub why: String,
    /// When it was said, in milliseconds since 1970.
    pub made: u64,
}

/// An order that is asked for: what it does not name stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OrderRequest {
    /// The service; `*` for all of them.
    pub service: String,
    /// `off`, `observe`, `enforce`, or `enforce 25%`; `none` takes the order of a mode back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long the mode holds; without end where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_seconds: Option<u64>,
    /// How long the shield holds; zero takes it down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shield_seconds: Option<u64>,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: String,
}

/// A switch that is thrown at one process: what it does not name says nothing any more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SwitchRequest {
    /// `off`, `observe`, `enforce`, or `enforce 25%`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long the shield holds; zero takes down one that the analysis has put up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield_seconds: Option<u64>,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: String,
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditEntry {
    /// When, in milliseconds since 1970.
    pub at: u64,
    /// By whose token or certificate.
    pub by: String,
    /// `override-set`, `override-dropped`, or `order-set`.
    pub action: String,
    /// Of which edges, or which service.
    pub subject: String,
    /// What was said, with owner and reason.
    pub detail: String,
}

/// All that operators have said and that holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orders {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// Classes of edges.
    pub overrides: Vec<Override>,
    /// Modes and shields.
    pub orders: Vec<Order>,
}

/// The newest lines of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Audit {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The lines.
    pub entries: Vec<AuditEntry>,
}

impl Override {
    /// Between which services and procedures, as people read it.
    #[must_use]
    pub fn subject(&self) -> String {
        let of = |service: &str, procedure: &Option<String>| match procedure {
            Some(procedure) => format!("{service} {procedure}"),
            None => service.to_owned(),
        };
        let caller = of(&self.caller, &self.caller_procedure);
        format!("{caller} \u{2192} {}", of(&self.callee, &self.procedure))
    }
}
