//! What operators say: classes of edges, modes and shields, and the record of who said what.

use serde::{Deserialize, Serialize};

use crate::classes::Class;

/// An operator's word on the class of edges, until it expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Override {
    /// Its name: the same for the same edges from the same source.
    pub id: String,
    /// Where it was said.
    #[serde(default)]
    pub source: OverrideSource,
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

/// Where an override was said; the file wins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum OverrideSource {
    /// To the API, as by `onus overrides apply`.
    #[default]
    Api,
    /// In the file that the analysis watches.
    File,
}

/// An override that is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// How long it holds, in seconds; this or `expires`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_seconds: Option<u64>,
    /// When it ends, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<u64>,
}

/// Overrides that are to be set together: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OverridesRequest {
    /// The overrides; those that hold and are not named stay.
    pub overrides: Vec<OverrideRequest>,
    /// Only tells what would change.
    #[serde(default)]
    pub dry_run: bool,
    /// Whether they are the next text of the file that the analysis follows, and take the place of
    /// all that it says; of that, only a dry run is made.
    #[serde(default)]
    pub source: OverrideSource,
}

/// What setting overrides changes, and what would have been different in the last hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverridesPlan {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// Whether they are set; not where it was a dry run.
    pub applied: bool,
    /// What is asked for, beside what holds.
    pub changes: Vec<OverrideChange>,
    /// The beginning of the time that is replayed, in milliseconds since 1970.
    pub from: u64,
    /// Its end.
    pub to: u64,
    /// How many edges get another class.
    pub edges_changed: usize,
    /// Those edges, the ones with most failures first; a thousand at most.
    pub edges: Vec<ReplayedEdge>,
    /// Over all of them: errors that would have said that a retry is open.
    pub claimed: Range,
    /// … that none is.
    pub unclaimed: Range,
    /// Retries of these errors that callers would have made, at most.
    pub retried: u64,
    /// … that callers would not have made, at most.
    pub suppressed: u64,
}

/// An override beside what holds of the same edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverrideChange {
    /// What holds; nothing where it is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Override>,
    /// What is asked for; nothing where it is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Override>,
    /// Whether the two differ.
    pub differs: bool,
}

/// An edge whose class changes, and what would have been different in the time that is replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayedEdge {
    /// The service that calls.
    pub caller: String,
    /// The procedure that it serves.
    pub caller_procedure: String,
    /// The service that is called.
    pub callee: String,
    /// The procedure that is called.
    pub procedure: String,
    /// The class that holds.
    pub before: Class,
    /// The class that would.
    pub after: Class,
    /// Requests in which the edge failed.
    pub failures: u64,
    /// Errors of the caller that would have said that a retry is open, and did not.
    pub claimed: Range,
    /// Errors of the caller that would have said that none is.
    pub unclaimed: Range,
    /// Retries that enforcing callers of the caller would have made, at most.
    pub retried: u64,
    /// Retries that enforcing callers of the caller would not have made, at most.
    pub suppressed: u64,
}

/// A count that is not known exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Range {
    /// At least.
    pub least: u64,
    /// At most.
    pub most: u64,
}

/// An override that is taken back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OverrideDrop {
    /// Its name.
    pub id: String,
}

/// What operators have said of a service; nothing unless it says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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

/// A switch that is thrown at one process: what it does not name stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct SwitchRequest {
    /// The service that is meant, `*` for all of them: a process of another one refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// `off`, `observe`, `enforce`, or `enforce 25%`; `none` takes the order of a mode back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// How long the mode holds; without end where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_seconds: Option<u64>,
    /// How long the shield holds; zero takes down one that the analysis has put up as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shield_seconds: Option<u64>,
    /// Who says so.
    pub who: String,
    /// Why.
    pub why: String,
}

/// A line of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Orders {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// Classes of edges.
    pub overrides: Vec<Override>,
    /// Modes and shields.
    pub orders: Vec<Order>,
    /// What is not in it, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// The analyses that have the services which are not in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<String>,
}

/// The newest lines of the audit log, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Audit {
    /// [`SCHEMA_VERSION`](crate::SCHEMA_VERSION).
    pub schema_version: u32,
    /// The lines.
    pub entries: Vec<AuditEntry>,
}

impl OverrideSource {
    /// The spelling everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::File => "file",
        }
    }
}

impl Override {
    /// Whether it says the same, whenever it was said.
    #[must_use]
    pub fn says_as(&self, other: &Self) -> bool {
        *self == Self { made: self.made, ..other.clone() }
    }

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
