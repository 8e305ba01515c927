//! What goes wrong, as it is typed.

use serde::Deserialize;
use serde_saphyr::Spanned;

use crate::simulate::quantity::{Probability, Span};

/// Something that goes wrong.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FaultFile {
    /// The service answers with an error.
    Fails(AtService),
    /// The service does its work, and the answer is lost: its caller reads silence at once.
    LosesAnswers(AtService),
    /// The service neither works nor answers; callers wait for their timeouts.
    Hangs(AtService),
    /// Errors of the service are such as no retry policy covers.
    AnswersExcluded(AtService),
    /// Calls that the service makes break before they reach anybody.
    CannotCall(AtService),
    /// Fewer workers.
    Capacity(Capacity),
    /// An edge changes its class.
    Deploy(Deploy),
}

/// A fault of a service, in some of its requests.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct AtService {
    pub(crate) service: Spanned<String>,
    /// In this share of its requests, each by itself.
    #[serde(default = "certain")]
    pub(crate) probability: Probability,
    /// Only in requests with a bad key.
    #[serde(default)]
    pub(crate) bad_keys: bool,
    /// Only in so many of its instances.
    #[serde(default)]
    pub(crate) instances: Option<u32>,
    /// Before the service calls anybody, and not once they have answered.
    #[serde(default)]
    pub(crate) at_once: bool,
    /// Only in its first so many requests.
    #[serde(default)]
    pub(crate) first: Option<u64>,
    /// Only in its requests of these numbers, counted from 1.
    #[serde(default)]
    pub(crate) numbers: Option<Vec<u64>>,
    #[serde(default)]
    pub(crate) from: Option<Span>,
    #[serde(default)]
    pub(crate) to: Option<Span>,
}

fn certain() -> Probability {
    Probability(1.0)
}

/// A service with fewer workers for some time.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Capacity {
    pub(crate) service: Spanned<String>,
    /// What is left of them.
    pub(crate) left: Probability,
    pub(crate) from: Span,
    pub(crate) to: Span,
}

/// A new version of a caller, that survives or does not survive what it did before.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Deploy {
    pub(crate) from: Spanned<String>,
    pub(crate) to: Spanned<String>,
    pub(crate) at: Span,
    /// Whether the caller survives the callee's failure from then on.
    pub(crate) fail_open: bool,
    /// How long the caller holds the old class; for ever unless given.
    #[serde(default)]
    pub(crate) learnt_after: Option<Span>,
}
