//! The dependency analysis that a proxy reports to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use onus::Onus;
use onus::report::{Analysis, ReportError, Reporter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::seconds;
use super::words::Span;
use super::{ProxyConfig, ProxyConfigError};

/// Where the dependency analysis is, and how it is talked to.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct AnalysisFile {
    /// Its address, such as `http://onus-analysis:7480`; one of `https` takes `ca`.
    pub url: String,
    /// A file with the token that says which service this is; it is read again when the analysis does not
    /// know it any more.
    #[serde(default)]
    pub token_file: Option<PathBuf>,
    /// Who vouches for the analysis, in a file of PEM.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// The certificate that is shown to the analysis, with those that vouch for it.
    #[serde(default)]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(default)]
    pub key: Option<PathBuf>,
    /// How often counts are reported.
    #[serde(default = "interval")]
    pub interval: Span,
    /// How long classes are believed that the analysis has not confirmed.
    #[serde(default = "staleness")]
    pub staleness: Span,
    /// A file that keeps the last classes, for a start while the analysis is away.
    #[serde(default)]
    pub state_file: Option<PathBuf>,
}

impl AnalysisFile {
    /// What is meant by it.
    pub(super) fn meant(&self) -> Result<Analysis, ProxyConfigError> {
        let mut analysis = Analysis::at(&self.url).interval(self.interval.0);
        if !STALENESS.contains(&self.staleness.0) {
            let allowed = "1s to 720h";
            return Err(wrong("analysis.staleness", self.staleness.to_string(), allowed));
        }
        analysis = analysis.staleness(self.staleness.0);
        if let Some(path) = &self.token_file {
            analysis = analysis.token_file(path);
        }
        if let Some(ca) = &self.ca {
            analysis = analysis.authorities(ca);
        }
        match (&self.certificate, &self.key) {
            (None, None) => {}
            (Some(certificate), Some(key)) => analysis = analysis.identity(certificate, key),
            (Some(_), None) | (None, Some(_)) => {
                let allowed = "a certificate and its key, or none of them";
                return Err(wrong("analysis.key", String::new(), allowed));
            }
        }
        if let Some(path) = &self.state_file {
            analysis = analysis.keep_classes_in(path);
        }
        analysis.check().map_err(|error| self.named(error))?;
        Ok(analysis)
    }

    /// The error with the setting that it is about.
    fn named(&self, error: ReportError) -> ProxyConfigError {
        match error {
            ReportError::Url { url } => {
                let allowed = "http:// with a host and a port, such as http://onus-analysis:7480, or \
                               https:// with analysis.ca";
                wrong("analysis.url", url, allowed)
            }
            ReportError::Token => {
                let path = self.token_file.as_deref().unwrap_or_else(|| Path::new(""));
                let shown = path.display().to_string();
                wrong("analysis.token-file", shown, "a file with a token of printable ASCII")
            }
            ReportError::TokenFile { path, source } => {
                ProxyConfigError::NamedFile { field: "analysis.token-file", path, source }
            }
            ReportError::Interval(_) => {
                wrong("analysis.interval", self.interval.to_string(), "1s to 5m")
            }
            source @ (ReportError::Tls { .. } | ReportError::NoRuntime) => {
                let is_of = |file: &Option<PathBuf>| match &source {
                    ReportError::Tls { path, .. } => file.as_ref() == Some(path),
                    ReportError::Url { .. }
                    | ReportError::Token
                    | ReportError::TokenFile { .. }
                    | ReportError::Interval(_)
                    | ReportError::NoRuntime => false,
                };
                let fields = [
                    ("analysis.ca", &self.ca),
                    ("analysis.certificate", &self.certificate),
                    ("analysis.key", &self.key),
                ];
                let field = fields.iter().find(|(_, file)| is_of(file));
                let field = field.map_or("analysis", |(field, _)| field);
                ProxyConfigError::Analysis { field, source }
            }
        }
    }
}

impl ProxyConfig {
    /// Starts to report, where an analysis is named.
    pub(crate) fn report(&self, onus: &Onus) -> Result<Option<Reporter>, ProxyConfigError> {
        let Some(file) = &self.file.analysis else { return Ok(None) };
        onus.report_to(file.meant()?).map(Some).map_err(|error| file.named(error))
    }
}

fn wrong(field: &str, value: String, allowed: &'static str) -> ProxyConfigError {
    ProxyConfigError::Value { field: field.to_owned(), value, allowed }
}

fn interval() -> Span {
    seconds(10)
}

fn staleness() -> Span {
    seconds(24 * 3600)
}

/// Shorter, and a slow answer would forget all; longer, and nobody remembers why.
const STALENESS: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(1)..=Duration::from_secs(720 * 3600);
