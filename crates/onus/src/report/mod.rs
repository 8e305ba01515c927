//! Reports what was counted to the dependency analysis, and follows what it hands back.
//!
//! Two tasks beside the traffic. One sends what was counted since the last report, every 10 s and
//! at once when an edge starts to fail; counts that the analysis has not stored stay in the
//! counters, so that its absence costs no memory and loses nothing. The other waits for classes and
//! orders of operators. Without an analysis edges are learnt locally and nothing else changes.

mod admin;
mod client;
mod follow;
mod kept;
mod ledger;
mod metrics;
mod ordered;
mod send;
mod snapshot;
mod tls;
mod token;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use self::client::Client;
use self::metrics::Standing;
use self::tls::Tls;
use self::token::Token;
use crate::onus::Onus;

pub use self::admin::AdminService;
pub(crate) use self::ordered::Ordered;

/// Where the analysis is, and how it is talked to.
#[derive(Clone, Debug)]
#[must_use]
pub struct Analysis {
    url: String,
    token: Option<Token>,
    interval: Duration,
    staleness: Duration,
    kept: Option<PathBuf>,
    tls: Tls,
}

impl Analysis {
    /// The analysis at this address, such as `http://onus-analysis:7480`.
    pub fn at(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: None,
            interval: Duration::from_secs(10),
            staleness: Duration::from_secs(24 * 3600),
            kept: None,
            tls: Tls::default(),
        }
    }

    /// The token that says which service this is.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(Token::Said(token.into()));
        self
    }

    /// The file with this token. It is read again when the analysis does not know the token any
    /// more, as after it has been renewed.
    pub fn token_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.token = Some(Token::In(path.into()));
        self
    }

    /// Believes an analysis whose certificate these authorities have signed, a PEM file; needed for
    /// an address of `https`.
    #[cfg(feature = "report-tls")]
    pub fn authorities(mut self, path: impl Into<PathBuf>) -> Self {
        self.tls.authorities = Some(path.into());
        self
    }

    /// Says who this service is by a certificate and its key, PEM files. They are read again when
    /// a connection cannot be made, as after they have been renewed.
    #[cfg(feature = "report-tls")]
    pub fn identity(mut self, certificate: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        self.tls.identity = Some((certificate.into(), key.into()));
        self
    }

    /// How often counts are reported (default 10 s, 1 s to 5 min).
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval;
        self
    }

    /// How long classes are believed that the analysis has not confirmed (default 24 h).
    pub fn staleness(mut self, staleness: Duration) -> Self {
        self.staleness = staleness;
        self
    }

    /// Keeps the last classes in this file, for a process that starts while the analysis is away.
    pub fn keep_classes_in(mut self, path: impl Into<PathBuf>) -> Self {
        self.kept = Some(path.into());
        self
    }

    /// Whether all of it can be meant, without talking to anybody.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, with what would be right.
    pub fn check(&self) -> Result<(), ReportError> {
        self.client().map(drop)
    }

    fn client(&self) -> Result<Client, ReportError> {
        if !(Duration::from_secs(1)..=Duration::from_secs(300)).contains(&self.interval) {
            return Err(ReportError::Interval(self.interval));
        }
        let wrong = || ReportError::Url { url: self.url.clone() };
        let base: Uri = self.url.parse().map_err(|_| wrong())?;
        if base.host().is_none() || !self.tls.reaches(base.scheme_str()) {
            return Err(wrong());
        }
        Client::new(&base, self.token.clone(), self.tls.clone())
    }
}

/// What cannot be meant of an [`Analysis`].
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The address is not one.
    #[error(
        "analysis address {url:?}; allowed is http:// with a host and a port, such as http://onus-analysis:7480, or https:// with the feature report-tls and authorities"
    )]
    Url {
        /// What was typed.
        url: String,
    },
    /// The token cannot stand in a header.
    #[error(
        "analysis token is empty or has characters that a header cannot carry; allowed is printable ASCII"
    )]
    Token,
    /// The file of the token cannot be read.
    #[error("{}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The interval is out of range.
    #[error("report interval is {0:?}; allowed is 1 s to 5 min")]
    Interval(Duration),
    /// A file of an authority or of an identity cannot be used.
    #[error("{path}: {why}")]
    Tls {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// There is no runtime to run on.
    #[error("report_to is called outside of a tokio runtime; call it in an async function")]
    NoRuntime,
}

/// The tasks that talk to the analysis. They end with the last handle of the service, whether this
/// is kept or not.
#[derive(Debug)]
pub struct Reporter {
    ending: watch::Sender<bool>,
    sending: JoinHandle<()>,
    standing: Arc<Standing>,
}

impl Onus {
    /// Starts to report to the analysis, and to follow the classes and orders that it hands back.
    ///
    /// # Errors
    ///
    /// The first value that cannot be meant, with what would be right.
    pub fn report_to(&self, analysis: Analysis) -> Result<Reporter, ReportError> {
        let client = analysis.client()?;
        let Analysis { interval, staleness, kept, .. } = analysis;
        let runtime = tokio::runtime::Handle::try_current().map_err(|_| ReportError::NoRuntime)?;
        let standing = Arc::new(Standing::default());
        let (ending, ends) = watch::channel(false);
        let sending = runtime.spawn(send::run(
            self.downgrade(),
            client.clone(),
            interval,
            standing.clone(),
            ends.clone(),
        ));
        let followed = follow::Followed { staleness, kept };
        runtime.spawn(follow::run(self.downgrade(), client, followed, standing.clone(), ends));
        Ok(Reporter { ending, sending, standing })
    }
}

impl Reporter {
    /// Sends what was counted until now, and ends; for the end of a process. It takes no longer
    /// than 5 s, whether the analysis answers or not.
    pub async fn finish(self) {
        let _ = self.ending.send(true);
        let _ = tokio::time::timeout(FINISH_MAX, self.sending).await;
    }

    /// Registers the metrics of reporting.
    pub fn register_metrics(&self, registry: &mut prometheus_client::registry::Registry) {
        metrics::register(self.standing.clone(), registry);
    }
}

const FINISH_MAX: Duration = Duration::from_secs(5);
