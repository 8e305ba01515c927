//! Which retries an edge has, by all layers that retry on it.

use std::collections::{BTreeSet, HashMap};

use onus_retry_config::{Budget, CalleeBudget, Caller, Policy, RetryConfig, Service, Traffic};

use crate::edges::EdgeFacts;

/// The retries of an edge, by the route that has the most.
#[derive(Clone, Debug, PartialEq)]
pub struct Retries {
    /// The most attempts of a call whose callee answers that it fails; 1 is no retry.
    pub attempts: u32,
    /// Whether there may be more: a budget alone limits them, or they were seen and no file says
    /// how many there are.
    pub or_more: bool,
    /// How that is known.
    pub from: RetriesFrom,
    /// What holds them back.
    pub budget: Option<Budget>,
    /// Whether retries are configured that only follow connections that could not be made.
    pub connections_only: bool,
    /// The policies, by their numbers in the configuration.
    pub policies: Vec<usize>,
}

/// How the retries of an edge are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetriesFrom {
    /// They are not: no file and no metric tells of any.
    Nothing,
    /// Somebody wrote them down.
    Configuration,
    /// The mesh makes them unless told otherwise.
    MeshDefault,
    /// More requests reach the callee than calls are made.
    Metrics,
    /// Traces show calls that are made again.
    Traces,
}

impl Retries {
    /// None.
    pub const NONE: Self = Self {
        attempts: 1,
        or_more: false,
        from: RetriesFrom::Nothing,
        budget: None,
        connections_only: false,
        policies: Vec::new(),
    };

    /// Requests for a call while every attempt fails, as the budget lets them.
    #[must_use]
    pub fn requests_per_call(&self) -> f64 {
        let most = f64::from(self.attempts);
        let budget = self.budget.map_or(f64::INFINITY, |budget| budget.requests_per_call());
        if self.or_more && budget.is_finite() { budget } else { most.min(budget) }
    }
}

impl RetriesFrom {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Configuration => "configuration",
            Self::MeshDefault => "default of the mesh",
            Self::Metrics => "metrics",
            Self::Traces => "traces",
        }
    }
}

/// The policies, by whom they are for.
pub(crate) struct Policies<'a> {
    config: &'a RetryConfig,
    by_callee: HashMap<&'a str, Vec<usize>>,
    /// Clients name a service of gRPC, with its package, and not who serves it.
    by_grpc_service: HashMap<String, Vec<usize>>,
    /// What a sidecar does that nobody has told anything.
    default: Option<Policy>,
}

impl<'a> Policies<'a> {
    /// `in_istio`: sidecars of Istio make the calls.
    pub(crate) fn new(config: &'a RetryConfig, in_istio: bool) -> Self {
        let untouched = || in_istio.then(Policy::untouched_istio);
        let mut by_callee: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut by_grpc_service: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, policy) in config.policies.iter().enumerate() {
            let name = &policy.callee.name;
            if policy.dialect.is_client() && name != "*" {
                let service = name.rsplit('.').next().unwrap_or(name);
                by_grpc_service.entry(plain(service)).or_default().push(number);
            } else {
                by_callee.entry(name).or_default().push(number);
            }
        }
        Self {
            config,
            by_callee,
            by_grpc_service,
            default: config.istio_default.clone().or_else(untouched),
        }
    }

    /// The budget for whatever calls the callee of an edge.
    fn budget(&self, callee: &Service, edge: &EdgeFacts) -> Option<Budget> {
        let mut called = edge.called.iter().chain([callee]);
        called.find_map(|called| CalleeBudget::loosest(&self.config.budgets, called))
    }

    /// Those for the calls of an edge: policies name what is called, which is not always what the
    /// callee calls itself.
    fn of(&self, caller: &Service, callee: &Service, edge: &EdgeFacts) -> Vec<(usize, &'a Policy)> {
        let mut numbers: BTreeSet<usize> = BTreeSet::new();
        for called in edge.called.iter().chain([callee]) {
            let by_name = [called.name.as_str(), "*"].into_iter();
            let by_name = by_name.filter_map(|name| self.by_callee.get(name)).flatten();
            let means = |number: &&usize| self.config.policies[**number].callee.means(called);
            numbers.extend(by_name.filter(means));
            numbers.extend(self.by_grpc_service.get(&plain(&called.name)).into_iter().flatten());
        }
        numbers
            .into_iter()
            .map(|number| (number, &self.config.policies[number]))
            .filter(|(_, policy)| is_for(&policy.caller, caller))
            .filter(|(_, policy)| !policy.dialect.is_client() || edge.traffic != Traffic::Http)
            .collect()
    }
}

/// `CartService`, `cart-service` and `cart` are one.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|at| !['-', '_'].contains(at));
    let plain: String = letters.flat_map(char::to_lowercase).collect();
    match plain.strip_suffix("service") {
        Some("") | None => plain,
        Some(stem) => stem.to_owned(),
    }
}

/// Finds the retries of an edge.
pub(crate) fn of_edge(
    policies: &Policies<'_>,
    caller: &Service,
    callee: &Service,
    edge: &EdgeFacts,
) -> Retries {
    let default = policies.default.as_ref();
    let mut retries = Retries::NONE;
    let budget = policies.budget(callee, edge);
    let policies = policies.of(caller, callee, edge);
    retries.policies = policies.iter().map(|(number, _)| *number).collect();
    for client in [false, true] {
        let of_layer: Vec<&Policy> = policies
            .iter()
            .map(|(_, policy)| *policy)
            .filter(|policy| policy.dialect.is_client() == client)
            .collect();
        let default = default.filter(|_| !client);
        let layer: Vec<&Policy> =
            if of_layer.is_empty() { default.into_iter().collect() } else { of_layer };
        // What nobody configured for this callee, and what is for all callees, has its budget too.
        let budget = budget.filter(|_| !client);
        add_layer(&mut retries, &layer, edge.traffic, budget);
    }
    let seen = edge.attempts_per_call.filter(|_| edge.calls.unwrap_or(0.0) >= ENOUGH_CALLS);
    if retries.attempts < 2 && seen.is_some_and(|seen| seen > SEEN_RETRIES) {
        retries.attempts = 2;
        retries.or_more = true;
        retries.from = RetriesFrom::Metrics;
    }
    if let Some(traced) = edge.traced_attempts.filter(|&traced| traced > retries.attempts) {
        retries.attempts = traced;
        retries.or_more = true;
        retries.from = RetriesFrom::Traces;
    }
    retries
}

/// Adds a layer: what stands beside the caller multiplies what the caller itself does.
fn add_layer(
    retries: &mut Retries,
    layer: &[&Policy],
    traffic: Traffic,
    of_callee: Option<Budget>,
) {
    retries.connections_only |=
        layer.iter().any(|policy| policy.attempts.retries() && !policy.retries_answers(traffic));
    let multiplying = layer.iter().filter(|policy| policy.retries_answers(traffic));
    let attempts = |policy: &Policy| policy.attempts.most().unwrap_or(UNLIMITED);
    let Some(most) = multiplying.max_by_key(|policy| attempts(policy)) else {
        if retries.from == RetriesFrom::Nothing && !layer.is_empty() {
            retries.from = from(layer);
        }
        return;
    };
    retries.attempts = retries.attempts.saturating_mul(attempts(most));
    retries.or_more |= most.attempts.most().is_none();
    retries.budget = retries.budget.or(most.budget).or(of_callee);
    retries.from = from(&[most]);
}

fn from(layer: &[&Policy]) -> RetriesFrom {
    match layer.iter().all(|policy| policy.by_default) {
        true => RetriesFrom::MeshDefault,
        false => RetriesFrom::Configuration,
    }
}

/// Gateways are workloads like any other, and called what they are by everybody.
fn is_for(configured: &Caller, caller: &Service) -> bool {
    match configured {
        Caller::Anyone => true,
        Caller::Service(service) => service.means(caller),
        Caller::Gateway => {
            ["gateway", "ingress", "envoy", "contour"].iter().any(|it| caller.name.contains(it))
        }
    }
}

/// Where a budget alone limits attempts they are counted as one retry, and "or more".
const UNLIMITED: u32 = 2;

/// Scrapes of two sidecars do not end at the same moment; less than this is no retry.
const SEEN_RETRIES: f64 = 1.02;

/// Fewer calls show nothing.
const ENOUGH_CALLS: f64 = 100.0;
