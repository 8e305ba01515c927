//! Policies as they are typed: a name, or a name with what differs.

use std::fmt;

use onus_core::Deposit;
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_saphyr::Spanned;

/// A policy and what is changed of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PolicyOptions {
    pub(crate) policy: PolicyName,
    /// What it is called in results; the policy's name unless given.
    #[serde(default)]
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) attempts: Option<u32>,
    /// Only calls of these services are retried.
    #[serde(default)]
    pub(crate) into: Option<Vec<Spanned<String>>>,
    /// Retries per hundred deposits of the budget.
    #[serde(default)]
    pub(crate) percent: Option<u32>,
    #[serde(default)]
    pub(crate) deposit: Option<DepositFile>,
    /// Retries per second that the budget grants whatever the traffic.
    #[serde(default)]
    pub(crate) floor: Option<u32>,
    #[serde(default)]
    pub(crate) gate: Option<bool>,
    #[serde(default)]
    pub(crate) mark: Option<bool>,
    #[serde(default)]
    pub(crate) probes: Option<bool>,
    #[serde(default)]
    pub(crate) silent_claims: Option<bool>,
}

/// What fills a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum DepositFile {
    Request,
    Success,
}

impl From<DepositFile> for Deposit {
    fn from(deposit: DepositFile) -> Self {
        match deposit {
            DepositFile::Request => Self::Request,
            DepositFile::Success => Self::Success,
        }
    }
}

/// The policies that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PolicyName {
    None,
    Everywhere,
    TopOnly,
    DirectOnly,
    BudgetPerRequest,
    BudgetPerSuccess,
    Gate,
    MarkOnly,
    GrpcThrottling,
    IstioGrpc,
    IstioHttp,
    IstioBudget,
    Linkerd,
    Bytedance,
    PlainMatrix,
    Ownership,
    OwnershipMark,
    OwnershipGate,
    OwnershipBudget,
    Articles,
    Recommended,
}

impl PolicyName {
    /// The spelling in scenarios and results.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Everywhere => "everywhere",
            Self::TopOnly => "top-only",
            Self::DirectOnly => "direct-only",
            Self::BudgetPerRequest => "budget-per-request",
            Self::BudgetPerSuccess => "budget-per-success",
            Self::Gate => "gate",
            Self::MarkOnly => "mark-only",
            Self::GrpcThrottling => "grpc-throttling",
            Self::IstioGrpc => "istio-grpc",
            Self::IstioHttp => "istio-http",
            Self::IstioBudget => "istio-budget",
            Self::Linkerd => "linkerd",
            Self::Bytedance => "bytedance",
            Self::PlainMatrix => "plain-matrix",
            Self::Ownership => "ownership",
            Self::OwnershipMark => "ownership-mark",
            Self::OwnershipGate => "ownership-gate",
            Self::OwnershipBudget => "ownership-budget",
            Self::Articles => "articles",
            Self::Recommended => "recommended",
        }
    }
}

impl PolicyName {
    /// Whether the policy has a percentage and a floor that can be swept.
    pub(crate) const fn has_budget(self) -> bool {
        match self {
            Self::BudgetPerRequest
            | Self::BudgetPerSuccess
            | Self::IstioBudget
            | Self::Linkerd
            | Self::OwnershipBudget
            | Self::Articles
            | Self::Recommended => true,
            Self::None
            | Self::Everywhere
            | Self::TopOnly
            | Self::DirectOnly
            | Self::Gate
            | Self::MarkOnly
            | Self::GrpcThrottling
            | Self::IstioGrpc
            | Self::IstioHttp
            | Self::Bytedance
            | Self::PlainMatrix
            | Self::Ownership
            | Self::OwnershipMark
            | Self::OwnershipGate => false,
        }
    }
}

/// A policy of a scenario.
#[derive(Clone, Debug)]
pub(crate) struct PolicyFile(pub(crate) PolicyOptions);

impl PolicyFile {
    const fn named(policy: PolicyName) -> Self {
        Self(PolicyOptions {
            policy,
            name: None,
            attempts: None,
            into: None,
            percent: None,
            deposit: None,
            floor: None,
            gate: None,
            mark: None,
            probes: None,
            silent_claims: None,
        })
    }
}

impl<'de> Deserialize<'de> for PolicyFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NameOrOptions)
    }
}

struct NameOrOptions;

impl<'de> Visitor<'de> for NameOrOptions {
    type Value = PolicyFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a policy, or `policy: NAME` with what differs")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<PolicyFile, E> {
        PolicyName::deserialize(StrDeserializer::new(name)).map(PolicyFile::named)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PolicyFile, A::Error> {
        PolicyOptions::deserialize(MapAccessDeserializer::new(map)).map(PolicyFile)
    }
}
