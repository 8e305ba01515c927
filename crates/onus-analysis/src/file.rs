//! The configuration file as it is typed, YAML; what is meant by it is in `meant`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::Location;

use crate::access::Role;
use crate::config::{AnalysisConfig, Limits};
use crate::typed::{At, Span};

/// The configuration of an analysis. Only `data` must be there.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AnalysisFile {
    /// The folder of the store; made if it is not there.
    pub(crate) data: PathBuf,
    /// Where it listens; port 0 for any.
    #[serde(default = "listen")]
    pub(crate) listen: SocketAddr,
    /// How often counts become evidence: 1s to 1h.
    #[serde(default = "minute")]
    pub(crate) minute: At<Span>,
    /// Who may do what. Without any, only an address of loopback is listened on.
    #[serde(default)]
    pub(crate) grants: Vec<At<GrantFile>>,
    /// Lets everybody in who reaches the address, for a mesh that guards it by other means.
    #[serde(default)]
    pub(crate) open: bool,
    /// A file of overrides that is followed while it runs; it wins over those that are set by
    /// request.
    #[serde(default)]
    pub(crate) overrides: Option<PathBuf>,
    /// The server's certificate; without it, it talks without TLS.
    #[serde(default)]
    pub(crate) tls: Option<TlsFile>,
    /// The PromQL store that evidence is read from, where agents are scraped.
    #[serde(default)]
    pub(crate) promql: Option<PromqlFile>,
    /// Which of several analyses this one is.
    #[serde(default)]
    pub(crate) shard: Option<ShardFile>,
    /// The bounds of what is remembered and taken in.
    #[serde(default)]
    pub(crate) limits: LimitsFile,
}

/// Somebody, and what they may do.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct GrantFile {
    /// Who it is, for the audit log.
    pub(crate) name: String,
    /// What they may do.
    pub(crate) role: RoleWord,
    /// The services that an agent speaks for: names, `prefix/*`, or `*`.
    #[serde(default)]
    pub(crate) services: Vec<String>,
    /// The file with their token, of at least 16 characters; it is read again every minute.
    #[serde(default)]
    pub(crate) token_file: Option<PathBuf>,
    /// A name in their certificate, a DNS name or a URI, instead of a token.
    #[serde(default)]
    pub(crate) certificate: Option<String>,
}

/// What somebody may do.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RoleWord {
    /// Reports for its services and reads their classes.
    Agent,
    /// Reads.
    Viewer,
    /// Also sets overrides and shields.
    Operator,
    /// Also switches modes, and takes backups.
    Admin,
}

impl From<RoleWord> for Role {
    fn from(word: RoleWord) -> Self {
        match word {
            RoleWord::Agent => Self::Agent,
            RoleWord::Viewer => Self::Viewer,
            RoleWord::Operator => Self::Operator,
            RoleWord::Admin => Self::Admin,
        }
    }
}

/// What the server shows, in files of PEM that are read anew when they change.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct TlsFile {
    /// The certificate, with those that vouch for it.
    pub(crate) certificate: PathBuf,
    /// Its private key.
    pub(crate) key: PathBuf,
    /// Who vouches for clients; needed where a grant is by certificate.
    #[serde(default)]
    pub(crate) client_authorities: Option<PathBuf>,
}

/// A PromQL store.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PromqlFile {
    /// Its address, such as `http://prometheus:9090`.
    pub(crate) url: At<String>,
    /// The file with the token for it.
    #[serde(default)]
    pub(crate) token_file: Option<PathBuf>,
    /// How long after its end a minute is read: 0s to 1h.
    #[serde(default = "delay")]
    pub(crate) delay: At<Span>,
    /// Whether the recording rules of docs/prometheus are in force.
    #[serde(default)]
    pub(crate) recorded: bool,
}

/// Which of several analyses this one is.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ShardFile {
    /// The addresses of all of them, in the same order everywhere.
    pub(crate) addresses: Vec<String>,
    /// Which of them is this one, from 0.
    pub(crate) index: At<usize>,
}

/// The bounds of what is remembered and taken in.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct LimitsFile {
    /// Edges kept apart; further ones share one edge per caller.
    pub(crate) edges: At<usize>,
    /// Edges of one caller kept apart.
    pub(crate) edges_per_service: At<usize>,
    /// Processes whose reports are told apart; those that were silent longest make room.
    pub(crate) instances: At<usize>,
    /// The most edges and procedures in one report.
    pub(crate) report_rows: At<usize>,
    /// The most bytes of one report.
    pub(crate) report_bytes: At<usize>,
    /// Reports that wait to be stored; further ones are asked to come again.
    pub(crate) waiting: At<usize>,
    /// How long minutes with failures are kept: 1h to 366d.
    pub(crate) windows: At<Span>,
    /// How long an edge is kept that nobody reports: 1d to 366d.
    pub(crate) silent_edges: At<Span>,
}

impl Default for LimitsFile {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            edges: limits.edges.into(),
            edges_per_service: limits.edges_per_service.into(),
            instances: limits.instances.into(),
            report_rows: limits.report_rows.into(),
            report_bytes: limits.report_bytes.into(),
            waiting: limits.waiting.into(),
            windows: Span(limits.windows).into(),
            silent_edges: Span(limits.silent_edges).into(),
        }
    }
}

fn listen() -> SocketAddr {
    AnalysisConfig::new("").listen
}

fn minute() -> At<Span> {
    Span(AnalysisConfig::new("").minute).into()
}

fn delay() -> At<Span> {
    Span(Duration::from_secs(60)).into()
}

impl AnalysisFile {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// One that cannot be read, or a part of it that cannot be meant.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// Reads the text of a file; `path` is for messages.
    ///
    /// # Errors
    ///
    /// A part that cannot be meant, and where.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        serde_saphyr::from_str(text).map_err(|error| ConfigError::of_parser(path, &error))
    }

    /// The file with every default, in YAML.
    ///
    /// # Errors
    ///
    /// A value that cannot be written, which none is.
    pub fn show(&self) -> Result<String, ConfigError> {
        let failed = |error: serde_saphyr::ser::Error| {
            let (path, message) = (PathBuf::new(), error.to_string());
            ConfigError::Text { path, message }
        };
        serde_saphyr::to_string(self).map_err(failed)
    }

    /// The JSON schema of the file.
    #[must_use]
    pub fn schema() -> String {
        let schema = schemars::schema_for!(Self);
        // A schema is JSON.
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        text
    }

    /// A file with every setting, and what each is for.
    #[must_use]
    pub const fn example() -> &'static str {
        include_str!("example.yaml")
    }
}

/// A configuration that cannot be meant.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The text is no configuration.
    #[error("understand {}: {message}", path.display())]
    Text {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        message: String,
    },
    /// A part of the text cannot be meant.
    #[error("understand {}:{line}:{column}: {message}", path.display())]
    At {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl ConfigError {
    /// What is wrong at a place in a file.
    pub(crate) fn at(path: &Path, place: Location, message: String) -> Self {
        let path = path.to_owned();
        if place == Location::UNKNOWN {
            return Self::Text { path, message };
        }
        Self::At { path, line: place.line(), column: place.column(), message }
    }

    pub(crate) fn of_parser(path: &Path, error: &serde_saphyr::Error) -> Self {
        let message = error.without_snippet().to_string();
        // The place is told in the same way for all errors.
        let end = message.rfind(" at line ").unwrap_or(message.len());
        let place = error.location().unwrap_or(Location::UNKNOWN);
        Self::at(path, place, message[..end].to_owned())
    }

    /// The text with what caused it.
    #[must_use]
    pub fn with_causes(&self) -> String {
        match std::error::Error::source(self) {
            Some(cause) => format!("failed to {self}: {cause}"),
            None => format!("failed to {self}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(text: &str) -> Result<AnalysisFile, ConfigError> {
        AnalysisFile::parse(text, Path::new("onus.yaml"))
    }

    #[test]
    fn the_example_is_sound_and_says_the_defaults() {
        let example = parse(AnalysisFile::example()).unwrap();
        AnalysisConfig::of(example.clone(), Path::new("onus.yaml")).unwrap();
        let shown = example.show().unwrap();
        assert_eq!(parse(&shown).unwrap().show().unwrap(), shown, "what is shown is read");
        let mut least = example;
        (least.grants, least.overrides, least.tls) = (Vec::new(), None, None);
        (least.promql, least.shard) = (None, None);
        let defaults = parse("data: /var/lib/onus").unwrap();
        assert_eq!(least.show().unwrap(), defaults.show().unwrap());
    }

    #[test]
    fn every_setting_of_the_schema_is_in_the_example() {
        let schema: Value = serde_json::from_str(&AnalysisFile::schema()).unwrap();
        let mut settings = Vec::new();
        collect(&schema, &mut settings);
        assert!(settings.len() > 20, "{settings:?}");
        settings.retain(|setting| !AnalysisFile::example().contains(&format!("{setting}:")));
        assert_eq!(settings, Vec::<String>::new());
    }

    /// The names of all properties.
    fn collect(schema: &Value, settings: &mut Vec<String>) {
        let Some(fields) = schema.as_object() else { return };
        if let Some(Value::Object(properties)) = fields.get("properties") {
            settings.extend(properties.keys().cloned());
        }
        fields.values().for_each(|value| collect(value, settings));
    }

    #[test]
    fn the_schema_for_editors_is_that_of_the_file() {
        assert_eq!(
            include_str!("../../../docs/onus-analysis.schema.json"),
            AnalysisFile::schema(),
            "write it anew: onus config schema --of analysis > docs/onus-analysis.schema.json"
        );
    }
}
