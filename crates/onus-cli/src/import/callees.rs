//! Policies, sorted by whom they are about.

use std::collections::BTreeMap;

use onus::ErrorSet;
use onus_proxy::{DeclaredFile, Errors, Like, MadeBy as Below, RetryFile};
use onus_retry_config::{
    Attempts, Caller, Condition, Dialect, Place, Policy, RetryConfig, Service,
};

use super::calls::{self, Call, Calls};
use super::{Lost, errors, retry};
use crate::cli::{ImportOptions, MadeBy};

/// What the files come to.
pub(super) struct Callees<'a> {
    options: &'a ImportOptions,
    own: Service,
    /// The callees that are asked for; empty: all that are named.
    asked: Vec<Service>,
    /// By their name in the file.
    pub(super) callees: BTreeMap<String, Callee>,
    pub(super) lost: Vec<Lost>,
}

/// What is written of a callee.
pub(super) struct Callee {
    service: Service,
    pub(super) port: Option<u16>,
    pub(super) hosts: Vec<String>,
    pub(super) routes: Vec<String>,
    /// The rule that has all calls but those of `procedures`.
    pub(super) all: Option<Found<RetryFile>>,
    pub(super) procedures: BTreeMap<String, Found<RetryFile>>,
    pub(super) declared: Option<Found<DeclaredFile>>,
    /// The rules that declared retries come from.
    layers: Vec<Layer>,
}

/// Something that is written, and where it comes from.
pub(super) struct Found<T> {
    pub(super) places: Vec<Place>,
    pub(super) by_default: bool,
    pub(super) says: T,
}

/// A rule by which others retry.
struct Layer {
    place: Place,
    by_default: bool,
    attempts: u32,
    errors: Option<ErrorSet>,
    is_istio_default: bool,
    is_for_all: bool,
}

impl<'a> Callees<'a> {
    pub(super) fn new(options: &'a ImportOptions) -> Self {
        let asked = options.callee.iter().map(|name| service(name)).collect();
        Self {
            options,
            own: service(&options.service),
            asked,
            callees: BTreeMap::new(),
            lost: Vec::new(),
        }
    }

    /// Takes what is written for this service, then what the mesh does without being told to.
    pub(super) fn take(&mut self, config: &RetryConfig) {
        // What names a callee comes before what is for any.
        let (any, named): (Vec<_>, Vec<_>) =
            config.policies.iter().partition(|policy| policy.callee.name == "*");
        for policy in named.into_iter().chain(any) {
            self.policy(policy);
        }
        for asked in self.asked.clone() {
            let name = name(&asked);
            if let (Some(default), false) =
                (&config.istio_default, self.callees.contains_key(&name))
            {
                self.policy(&Policy { callee: asked, ..default.clone() });
            }
        }
        for budget in &config.budgets {
            let held = config.policies.iter().any(|policy| budget.callee.means(&policy.callee));
            if !held && self.options.made_by == MadeBy::Onus && self.is_asked(&budget.callee) {
                self.lose(&budget.place, "a budget of a callee whose retries are in no file");
            }
        }
        if self.options.made_by == MadeBy::Below {
            self.declare();
        }
    }

    fn policy(&mut self, policy: &Policy) {
        match &policy.caller {
            Caller::Anyone => {}
            // What others retry is not of this service.
            Caller::Service(caller) if !caller.means(&self.own) => return,
            Caller::Service(_) => {}
            Caller::Gateway if self.options.gateway => {}
            Caller::Gateway => {
                self.lose(&policy.place, "retries of a gateway (--gateway, if the service is one)");
                return;
            }
        }
        for service in self.targets(policy) {
            match self.options.made_by {
                MadeBy::Onus => self.retry(policy, service),
                MadeBy::Below => self.layer(policy, service),
            }
        }
    }

    /// Who is called.
    fn targets(&mut self, policy: &Policy) -> Vec<Service> {
        if policy.dialect.is_client() {
            return self.target_of_client(policy).into_iter().collect();
        }
        if !self.asked.is_empty() {
            let meant = self.asked.iter().filter(|asked| policy.callee.means(asked));
            return meant.cloned().collect();
        }
        if policy.callee.name == "*" {
            self.lose(&policy.place, "retries of calls to any service (--callee names one)");
            return Vec::new();
        }
        vec![policy.callee.clone()]
    }

    /// A service config of gRPC names procedures, and not who has them.
    fn target_of_client(&mut self, policy: &Policy) -> Option<Service> {
        if self.options.made_by == MadeBy::Below {
            self.lose(
                &policy.place,
                "retries that the application makes itself; the sidecar recognises its repeats",
            );
            return None;
        }
        let Some(callee) = &self.options.grpc_callee else {
            self.lose(&policy.place, "who is called is not written there (--grpc-callee names it)");
            return None;
        };
        Some(service(callee))
    }

    fn is_asked(&self, callee: &Service) -> bool {
        self.asked.is_empty() || self.asked.iter().any(|asked| callee.means(asked))
    }

    fn retry(&mut self, policy: &Policy, service: Service) {
        let place = &policy.place;
        let unsafe_methods = self.options.unsafe_methods || !may_repeat_work(policy);
        let (mut calls, mut lost) = calls::of(policy, unsafe_methods);
        let (mut says, more) = retry::of(policy);
        lost.extend(more);
        let is_grpc = policy.dialect == Dialect::Grpc;
        let any_method = policy.route.matches.iter().any(|one| one.method.is_none())
            || policy.route.matches.is_empty();
        let http = policy.route.grpc_methods.is_empty() && !is_grpc;
        if says.attempts > 1 && http && any_method && !unsafe_methods {
            lost.push(
                "POST, PUT, PATCH and DELETE too, whose work may be done twice (--unsafe-methods)"
                    .to_owned(),
            );
        }
        if is_grpc && policy.route.grpc_methods.is_empty() && policy.callee.name != "*" {
            lost.push(format!("all methods of {}; procedures are single ones", policy.callee.name));
            calls = Calls::Some(Vec::new());
        }
        let callee = self.callee(policy, service, &mut lost);
        let found = |says: &RetryFile| Found {
            places: vec![place.clone()],
            by_default: policy.by_default,
            says: says.clone(),
        };
        match (&mut callee.all, calls) {
            (Some(first), Calls::All) => {
                let other = first.also(&says, place).err();
                lost.extend(other.map(|other| format!("another rule has all calls: {other}")));
            }
            (None, Calls::All) => {
                says.unsafe_methods = unsafe_methods && http;
                callee.all = Some(found(&says));
            }
            (Some(first), Calls::Some(_))
                if in_order(policy) && first.places[0].file == place.file =>
            {
                lost.push(format!("another rule has all calls: {}", first.places[0]));
            }
            (_, Calls::Some(calls)) => {
                for call in calls {
                    callee
                        .routes
                        .extend(call.template.clone().filter(|it| !callee.routes.contains(it)));
                    let Call { procedure, .. } = call;
                    let Some(first) = callee.procedures.get_mut(&procedure) else {
                        callee.procedures.insert(procedure, found(&says));
                        continue;
                    };
                    let other = first.also(&says, place).err();
                    lost.extend(other.map(|it| format!("{procedure} has another rule: {it}")));
                }
            }
        }
        lost.iter().for_each(|why| self.lose(place, why));
    }

    fn layer(&mut self, policy: &Policy, service: Service) {
        let mut lost = Vec::new();
        let (errors, unknown) = errors::of(&policy.conditions, MadeBy::Below);
        lost.extend(unknown);
        let attempts = match policy.attempts {
            Attempts::AtMost(attempts) if attempts > DECLARED => {
                lost.push(format!("{attempts} attempts; {DECLARED} are the most to declare"));
                DECLARED
            }
            Attempts::AtMost(attempts) => attempts,
            // As many as the budget pays: any number that is more than one decides alike.
            Attempts::WhileBudgetPays => 10,
        };
        let untouched = Policy::untouched_istio();
        let is_for_all = calls::of(policy, true).0 == Calls::All;
        let callee = self.callee(policy, service, &mut lost);
        callee.layers.push(Layer {
            place: policy.place.clone(),
            by_default: policy.by_default,
            attempts,
            errors,
            is_istio_default: policy.attempts == untouched.attempts
                && policy.conditions == untouched.conditions,
            is_for_all,
        });
        lost.iter().for_each(|why| self.lose(&policy.place, why));
    }

    /// A declaration is for all calls to a callee, so it is made of its largest.
    fn declare(&mut self) {
        let mut lost = Vec::new();
        for callee in self.callees.values_mut() {
            let Some(most) = callee.layers.iter().max_by_key(|layer| layer.attempts) else {
                continue;
            };
            let mut all = Some(ErrorSet::EMPTY);
            for layer in callee.layers.iter().filter(|layer| layer.attempts > 1) {
                all = all.zip(layer.errors).map(|(one, other)| union(one, other));
            }
            for layer in &callee.layers {
                if !layer.is_for_all
                    || layer.attempts != most.attempts
                    || layer.errors != most.errors
                {
                    let why =
                        "a declaration is for all calls to a callee; made of its largest rules";
                    lost.push(Lost { place: layer.place.clone(), why: why.to_owned() });
                }
            }
            let known = most.is_istio_default && all == most.errors;
            let alike = callee.layers.iter().filter(|layer| layer.is_like(most));
            let mut places: Vec<_> = alike.map(|layer| layer.place.clone()).collect();
            places.dedup();
            callee.declared = Some(Found {
                places,
                by_default: most.by_default,
                says: DeclaredFile {
                    made_by: Below::Below,
                    like: known.then_some(Like::IstioDefault),
                    attempts: (!known).then_some(most.attempts),
                    errors: all.filter(|_| !known).map(Errors),
                },
            });
        }
        self.lost.extend(lost);
    }

    fn callee(&mut self, policy: &Policy, service: Service, lost: &mut Vec<String>) -> &mut Callee {
        let callee = self.callees.entry(name(&service)).or_insert_with(|| {
            let mut hosts = Vec::new();
            if let Some(namespace) = &service.namespace {
                if self.own.namespace.as_ref() == Some(namespace) {
                    hosts.push(service.name.clone());
                }
                hosts.push(format!("{}.{namespace}", service.name));
            }
            Callee {
                service,
                port: policy.port,
                hosts,
                routes: Vec::new(),
                all: None,
                procedures: BTreeMap::new(),
                declared: None,
                layers: Vec::new(),
            }
        });
        match (callee.port, policy.port) {
            (Some(port), Some(other)) if port != other => {
                lost.push(format!("port {other}; a callee has one, and this has {port}"));
            }
            (None, port) => callee.port = port,
            (Some(_), _) => {}
        }
        callee
    }

    fn lose(&mut self, place: &Place, why: &str) {
        self.lost.push(Lost { place: place.clone(), why: why.to_owned() });
    }
}

impl Found<RetryFile> {
    /// Takes over a rule that says the same; the place of this one where it says something else.
    fn also(&mut self, says: &RetryFile, place: &Place) -> Result<(), String> {
        let text = |retry: &RetryFile| {
            serde_json::to_string(&RetryFile { unsafe_methods: false, ..retry.clone() })
                .unwrap_or_default()
        };
        if text(&self.says) != text(says) {
            return Err(self.places[0].to_string());
        }
        if !self.places.contains(place) {
            self.places.push(place.clone());
        }
        Ok(())
    }
}

impl Layer {
    fn is_like(&self, other: &Self) -> bool {
        self.attempts == other.attempts && self.errors == other.errors
    }
}

impl Callee {
    /// Where it is: in a cluster by its name there.
    pub(super) fn address(&self, assumed: u16) -> String {
        let port = self.port.unwrap_or(assumed);
        let Service { name, namespace } = &self.service;
        match namespace {
            Some(namespace) => format!("{name}.{namespace}.svc.cluster.local:{port}"),
            None => format!("{name}:{port}"),
        }
    }
}

/// A service as people write it: `namespace/name`.
fn service(name: &str) -> Service {
    match name.split_once('/') {
        Some((namespace, name)) => Service::new(name, Some(namespace)),
        None => Service::new(name, None),
    }
}

fn name(service: &Service) -> String {
    match &service.namespace {
        Some(namespace) => format!("{namespace}/{}", service.name),
        None => service.name.clone(),
    }
}

/// Whether the first rule that fits is the one that counts.
fn in_order(policy: &Policy) -> bool {
    match policy.dialect {
        Dialect::Istio | Dialect::Envoy => true,
        Dialect::GatewayApi
        | Dialect::EnvoyGateway
        | Dialect::Linkerd
        | Dialect::Contour
        | Dialect::Grpc => false,
    }
}

/// Whether a retry may repeat what was done.
fn may_repeat_work(policy: &Policy) -> bool {
    policy.conditions.is_empty() || policy.conditions.iter().any(Condition::may_follow_work)
}

fn union(one: ErrorSet, other: ErrorSet) -> ErrorSet {
    let statuses = (400..=599).map(onus::CallError::Http);
    let all = statuses.chain((1..=16).map(onus::CallError::Grpc)).chain(onus::CallError::TRANSPORT);
    all.filter(|&error| one.contains(error) || other.contains(error)).collect()
}

/// The most attempts that a declaration may have.
const DECLARED: u32 = 100;
