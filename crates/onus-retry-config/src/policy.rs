//! The one model: who may retry what, how often, and what holds it back.

use std::fmt;
use std::time::Duration;

use crate::condition::{Condition, Traffic};
use crate::route::Route;
use crate::service::Service;

/// The retries of one route to one callee.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Where it is written.
    pub place: Place,
    /// What it is written for.
    pub dialect: Dialect,
    /// Whose calls it is for.
    pub caller: Caller,
    /// Whom they call.
    pub callee: Service,
    /// The port that is called, where that is written.
    pub port: Option<u16>,
    /// Which of them.
    pub route: Route,
    /// How often a call is tried.
    pub attempts: Attempts,
    /// What is retried; empty where the configuration leaves it to who implements it.
    pub conditions: Vec<Condition>,
    /// What holds retries back.
    pub budget: Option<Budget>,
    /// The longest that one attempt may take.
    pub per_try_timeout: Option<Duration>,
    /// The longest that all attempts together may take.
    pub timeout: Option<Duration>,
    /// The wait before a retry.
    pub backoff: Option<Backoff>,
    /// Whether nobody wrote it down: the mesh retries so by itself.
    pub by_default: bool,
}

/// Where something is written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// Kind and name of the object, and the way to the field in it.
    pub object: String,
}

/// What a configuration is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Istio's VirtualService and DestinationRule.
    Istio,
    /// The Gateway API.
    GatewayApi,
    /// Envoy Gateway's policies on top of it.
    EnvoyGateway,
    /// Envoy's own routes.
    Envoy,
    /// Linkerd's annotations and ServiceProfile.
    Linkerd,
    /// Contour's HTTPProxy.
    Contour,
    /// gRPC's service config, in clients.
    Grpc,
}

/// Whose calls a policy is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// Whoever calls.
    Anyone,
    /// One service.
    Service(Service),
    /// Gateways, where requests come in.
    Gateway,
}

/// How often a call is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempts {
    /// At most so often, the first attempt included; 1 is no retry.
    AtMost(u32),
    /// As long as the budget pays.
    WhileBudgetPays,
}

/// What holds retries back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// Retries for a hundred requests.
    pub percent: f64,
    /// Which requests.
    pub basis: BudgetBasis,
    /// What is allowed whatever the traffic.
    pub floor: Option<Floor>,
}

/// What a budget is a share of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetBasis {
    /// The requests that are in flight.
    InFlight,
    /// The requests of the last so many seconds.
    Interval(Duration),
    /// The calls that ended well.
    Successes,
}

/// Retries that are allowed whatever the traffic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Floor {
    /// So many at once.
    AtOnce(u32),
    /// So many a second.
    PerSecond(f64),
}

/// A budget for whatever calls a service.
#[derive(Clone, Debug, PartialEq)]
pub struct CalleeBudget {
    /// Where it is written.
    pub place: Place,
    /// What it is written for.
    pub dialect: Dialect,
    /// Whose callers it holds back.
    pub callee: Service,
    /// The budget.
    pub budget: Budget,
}

impl CalleeBudget {
    /// The budget that holds back the calls of `callee`: of several, the loosest.
    #[must_use]
    pub fn loosest(budgets: &[Self], callee: &Service) -> Option<Budget> {
        let of_callee = budgets.iter().filter(|budget| budget.callee.means(callee));
        of_callee
            .map(|budget| budget.budget)
            .max_by(|one, other| one.percent.total_cmp(&other.percent))
    }
}

/// The wait before a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Before the first one.
    pub base: Duration,
    /// The longest.
    pub max: Option<Duration>,
}

impl Policy {
    /// Whether it retries an answer by which a callee says that it failed: retries of connections
    /// that could not be made do not climb from hop to hop.
    #[must_use]
    pub fn retries_answers(&self, traffic: Traffic) -> bool {
        let covers = self.conditions.is_empty()
            || self.conditions.iter().any(|condition| condition.covers_answers(traffic));
        self.attempts.retries() && covers
    }

    /// The methods that are not idempotent by their definition (RFC 9110, section 9.2.2), and are
    /// retried though they may have been processed; for gRPC those whose names do not say that
    /// they read.
    #[must_use]
    pub fn repeated_writes(&self) -> Vec<String> {
        let grpc = !self.route.grpc_methods.is_empty() || self.dialect == Dialect::Grpc;
        let follows_work = |condition: &Condition| match condition {
            Condition::Grpc(_) => grpc,
            Condition::ConnectFailure
            | Condition::RefusedStream
            | Condition::ResetBeforeRequest
            | Condition::NoAnswer
            | Condition::ServerError
            | Condition::GatewayError
            | Condition::Status(_)
            | Condition::Statuses(..)
            | Condition::Header
            | Condition::RateLimited
            | Condition::Unknown(_) => condition.may_follow_work(),
        };
        let repeats = self.conditions.is_empty() || self.conditions.iter().any(follows_work);
        if !self.attempts.retries() || !repeats {
            return Vec::new();
        }
        if grpc {
            let writes = self.route.grpc_methods.iter().filter(|method| !reads(method));
            return writes.cloned().collect();
        }
        let limited = |method: &&str| {
            self.route.methods.is_empty() || self.route.methods.iter().any(|own| own == method)
        };
        NOT_IDEMPOTENT.iter().copied().filter(limited).map(str::to_owned).collect()
    }
}

impl Attempts {
    /// The most attempts; `None` where a budget alone limits them.
    #[must_use]
    pub const fn most(self) -> Option<u32> {
        match self {
            Self::AtMost(most) => Some(most),
            Self::WhileBudgetPays => None,
        }
    }

    /// Whether there is any retry.
    #[must_use]
    pub const fn retries(self) -> bool {
        match self {
            Self::AtMost(most) => most >= 2,
            Self::WhileBudgetPays => true,
        }
    }
}

impl Budget {
    /// Requests for one call in the long run while every attempt fails, the floor left out: a share
    /// of what is in flight counts retries too.
    #[must_use]
    pub fn requests_per_call(&self) -> f64 {
        let share = self.percent / 100.0;
        match self.basis {
            BudgetBasis::InFlight if share < 1.0 => 1.0 / (1.0 - share),
            BudgetBasis::InFlight => f64::INFINITY,
            BudgetBasis::Interval(_) => 1.0 + share,
            BudgetBasis::Successes => 1.0,
        }
    }
}

impl Dialect {
    /// The name that people use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Istio => "Istio",
            Self::GatewayApi => "Gateway API",
            Self::EnvoyGateway => "Envoy Gateway",
            Self::Envoy => "Envoy",
            Self::Linkerd => "Linkerd",
            Self::Contour => "Contour",
            Self::Grpc => "gRPC",
        }
    }

    /// Whether it is code in the caller that retries, and not what stands beside it: the two
    /// multiply.
    #[must_use]
    pub const fn is_client(self) -> bool {
        match self {
            Self::Grpc => true,
            Self::Istio
            | Self::GatewayApi
            | Self::EnvoyGateway
            | Self::Envoy
            | Self::Linkerd
            | Self::Contour => false,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.file, self.line)?;
        if self.object.is_empty() { Ok(()) } else { write!(formatter, ": {}", self.object) }
    }
}

impl fmt::Display for Attempts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtMost(most) => write!(formatter, "{most}"),
            Self::WhileBudgetPays => formatter.write_str("while the budget pays"),
        }
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.basis {
            BudgetBasis::InFlight => write!(formatter, "{} % of those in flight", self.percent)?,
            BudgetBasis::Interval(time) => {
                write!(formatter, "{} % in {} s", self.percent, time.as_secs_f64())?;
            }
            BudgetBasis::Successes => write!(formatter, "{} % of successes", self.percent)?,
        }
        match self.floor {
            Some(Floor::AtOnce(retries)) => write!(formatter, ", at least {retries} at once"),
            Some(Floor::PerSecond(retries)) => write!(formatter, ", at least {retries}/s"),
            None => Ok(()),
        }
    }
}

/// What RFC 9110 does not define as idempotent, of the methods that people route.
const NOT_IDEMPOTENT: [&str; 2] = ["POST", "PATCH"];

/// How methods that only read are called, by the usual guides for names of gRPC methods.
const READS: [&str; 16] = [
    "Get", "List", "BatchGet", "Search", "Query", "Read", "Find", "Lookup", "Check", "Test",
    "Watch", "Describe", "Count", "Exists", "Fetch", "View",
];

fn reads(method: &str) -> bool {
    let name = method.rsplit('/').next().unwrap_or(method);
    READS.iter().any(|verb| {
        let rest = name.strip_prefix(verb);
        rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_lowercase()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_reads_by_its_name() {
        for (method, expected) in [
            ("shop.Cart/GetCart", true),
            ("shop.Cart/Get", true),
            ("shop.Cart/Getaway", false),
            ("shop.Cart/ListItems", true),
            ("shop.Cart/AddItem", false),
            ("Publish", false),
            ("TestIamPermissions", true),
        ] {
            assert_eq!(reads(method), expected, "{method}");
        }
    }

    #[test]
    fn what_a_budget_lets_through() {
        let budget = |percent, basis| Budget { percent, basis, floor: None };
        let interval = BudgetBasis::Interval(Duration::from_secs(10));
        for (percent, basis, expected) in [
            (20.0, interval, 1.2),
            (20.0, BudgetBasis::InFlight, 1.25),
            (100.0, interval, 2.0),
            (100.0, BudgetBasis::InFlight, f64::INFINITY),
        ] {
            let budget = budget(percent, basis);
            assert_eq!(budget.requests_per_call(), expected, "{budget}");
        }
    }
}
