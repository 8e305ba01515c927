//! What is typed for a proxy, and what is meant by it.

mod analysis;
mod authorities;
mod callee;
mod file;
mod meant;
mod one_or_many;
mod overrides;
mod places;
mod words;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use onus::ConfigError;
use onus::report::ReportError;

use crate::tls::TlsError;

pub use self::analysis::AnalysisFile;
pub use self::file::{
    AdminFile, AnnotationWord, BudgetFile, CalleeFile, CalleeTlsFile, ClassWord, ConfigFile,
    CorrelationFile, DeclaredFile, DrainFile, ForwardingFile, InboundFile, InboundTlsFile, Like,
    LimitsFile, MadeBy, OutboundFile, ProtocolWord, ReplayFile, RetryFile,
};
pub(crate) use self::meant::CalleeConfig;
pub use self::meant::ProxyConfig;
pub use self::one_or_many::OneOrMany;
pub use self::overrides::Overrides;
use self::places::Places;
pub use self::words::{Errors, ModeWord, Size, Span};

/// A configuration that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ProxyConfigError {
    /// The file cannot be read.
    #[error("read {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file has a line that cannot be meant; the text shows it.
    #[error("understand the configuration: {0}")]
    Malformed(String),
    /// A value makes no sense beside the others.
    #[error("use the configuration: {field} is {}; allowed is {allowed}", said(value))]
    Value {
        /// The setting, by its path in the file.
        field: String,
        /// What was typed; nothing where it is missing.
        value: String,
        /// What would be right.
        allowed: &'static str,
    },
    /// A variable of the environment has a value that cannot be meant.
    #[error("use the environment: {name} is {value:?}: {why}")]
    Variable {
        /// The variable.
        name: String,
        /// What it says.
        value: String,
        /// What is wrong.
        why: String,
    },
    /// A running proxy cannot take it over.
    #[error("use the configuration: another {field} needs a restart")]
    NeedsRestart {
        /// The setting, by its path in the file.
        field: String,
    },
    /// A certificate cannot be used.
    #[error("use the configuration: {field}")]
    Tls {
        /// The setting, by its path in the file.
        field: String,
        /// What is wrong.
        #[source]
        source: TlsError,
    },
    /// A file that a setting names cannot be read.
    #[error("use the configuration: {field} is {}, which cannot be read", path.display())]
    NamedFile {
        /// The setting, by its path in the file.
        field: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The analysis cannot be talked to like this.
    #[error("use the configuration: {field}")]
    Analysis {
        /// The setting, by its path in the file.
        field: &'static str,
        /// What is wrong.
        #[source]
        source: ReportError,
    },
    /// The agent refuses a value; its text has its cause in it.
    #[error("use the configuration: {0}")]
    Refused(ConfigError),
    /// Any of these, and where the setting comes from.
    #[error(transparent)]
    At(Placed),
}

/// An error in a setting, and where that comes from.
#[derive(Debug)]
pub struct Placed {
    /// A line of the file, or a variable.
    place: String,
    error: Box<ProxyConfigError>,
}

impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.error, self.place)
    }
}

impl Error for Placed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl From<ConfigError> for ProxyConfigError {
    fn from(error: ConfigError) -> Self {
        Self::Refused(error)
    }
}

impl ProxyConfigError {
    /// What the parser says and shows, behind words of the command that reads it.
    fn malformed(error: &serde_saphyr::Error) -> Self {
        let text = error.to_string();
        Self::Malformed(text.strip_prefix("error: ").unwrap_or(&text).to_owned())
    }

    /// With where its setting comes from, if that is known.
    fn at(self, places: &Places) -> Self {
        let place = self.field().and_then(|field| places.find(&field).map(str::to_owned));
        match place {
            Some(place) => Self::At(Placed { place, error: Box::new(self) }),
            None => self,
        }
    }

    /// The setting that is wrong, by its path in the file.
    fn field(&self) -> Option<String> {
        let of = |callee: &str, what: &str| format!("callees.{callee}.{what}");
        Some(match self {
            Self::Value { field, .. } | Self::Tls { field, .. } => field.clone(),
            Self::NamedFile { field, .. } | Self::Analysis { field, .. } => (*field).to_owned(),
            Self::Refused(ConfigError::Service(_)) => "service".to_owned(),
            Self::Refused(ConfigError::Callee(callee)) => format!("callees.{callee}"),
            Self::Refused(ConfigError::Policy { edge, .. }) => of(edge, "retry"),
            Self::Refused(ConfigError::Twice { edge, .. }) => format!("callees.{edge}"),
            Self::Refused(ConfigError::Stacked { callee }) => of(callee, "retry"),
            Self::Refused(ConfigError::Declared { callee, .. }) => of(callee, "retries"),
            Self::Refused(ConfigError::Procedure { callee, procedure }) => {
                of(callee, &format!("procedures.{procedure}"))
            }
            Self::Refused(ConfigError::Alias(_)) => "claim-alias".to_owned(),
            Self::Refused(ConfigError::Share { .. }) => "mode".to_owned(),
            Self::Unreadable { .. }
            | Self::Malformed(_)
            | Self::Variable { .. }
            | Self::NeedsRestart { .. }
            | Self::Refused(ConfigError::NeedsRestart { .. } | ConfigError::Limit { .. })
            | Self::At(_) => return None,
        })
    }

    /// The parser does not know where its text comes from.
    fn in_file(mut self, path: &Path) -> Self {
        if let Self::Malformed(text) = &mut self {
            *text = text.replacen(NAMELESS, &path.display().to_string(), 1);
        }
        self
    }
}

/// The parser's name for its text.
const NAMELESS: &str = "<input>";

fn said(value: &str) -> String {
    if value.is_empty() { "missing".to_owned() } else { format!("{value:?}") }
}

impl ConfigFile {
    /// Reads a file, and takes over what variables say.
    ///
    /// # Errors
    ///
    /// One that cannot be read, or a line that cannot be meant.
    pub fn read(path: &Path, overrides: &Overrides) -> Result<Self, ProxyConfigError> {
        overrides.read(&Self::text(path)?).map_err(|error| error.in_file(path))
    }

    /// Reads the text of a file, and takes over what variables say.
    ///
    /// # Errors
    ///
    /// A line or a variable that cannot be meant.
    pub fn with(text: &str, overrides: &Overrides) -> Result<Self, ProxyConfigError> {
        overrides.read(text)
    }

    /// A file with every value that is in force, in YAML, and where each comes from.
    ///
    /// # Errors
    ///
    /// What keeps a proxy from starting with it.
    pub fn explain(path: &Path, overrides: &Overrides) -> Result<String, ProxyConfigError> {
        let text = Self::text(path)?;
        let file = overrides.read(&text).map_err(|error| error.in_file(path))?;
        ProxyConfig::new(file.clone())?;
        Ok(overrides.explain(&file.show()?, &text))
    }

    fn text(path: &Path) -> Result<String, ProxyConfigError> {
        std::fs::read_to_string(path)
            .map_err(|source| ProxyConfigError::Unreadable { path: path.to_owned(), source })
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// A line that cannot be meant.
    pub fn parse(text: &str) -> Result<Self, ProxyConfigError> {
        let read = serde_saphyr::from_str(text);
        let mut file: Self = read.map_err(|error| ProxyConfigError::malformed(&error))?;
        file.places = Places::of(text);
        Ok(file)
    }

    /// The file with every default, in YAML.
    ///
    /// # Errors
    ///
    /// A value that cannot be written, which none is.
    pub fn show(&self) -> Result<String, ProxyConfigError> {
        serde_saphyr::to_string(self)
            .map_err(|error| ProxyConfigError::Malformed(error.to_string()))
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
