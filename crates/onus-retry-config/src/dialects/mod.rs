//! One file for each thing that people configure retries of, and the choice among them.

mod contour;
mod envoy;
mod envoy_gateway;
mod gateway_api;
mod grpc;
mod istio;
mod kubernetes;
mod linkerd;

use std::collections::BTreeMap;

use crate::cursor::Cursor;
use crate::import::RetryConfig;
use crate::policy::{CalleeBudget, Dialect, Policy};
use crate::unread::Unread;

/// What was read so far, before it is joined.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    policies: Vec<Policy>,
    budgets: Vec<CalleeBudget>,
    istio: istio::Mesh,
    routes: Vec<gateway_api::RouteRule>,
    attachments: Vec<envoy_gateway::Attachment>,
    profiled: Vec<crate::service::Service>,
    passed_over: BTreeMap<String, u64>,
}

/// Reads a document; false where nothing in it is known.
pub(crate) fn read(at: &Cursor<'_>, findings: &mut Findings) -> bool {
    if kubernetes::is_object(at) {
        kubernetes::read(at, findings);
        return true;
    }
    if grpc::is_service_config(at) {
        grpc::read(at, findings);
        return true;
    }
    let of_envoy = envoy::read(at, findings);
    if envoy::is_whole(at) {
        return of_envoy;
    }
    // Anything may be wrapped in lists and maps: dumps of controllers, goldens of tests.
    let mut known = of_envoy;
    for (_, value) in at.children() {
        known |= !value.children().is_empty() && read(&value, findings);
    }
    known
}

impl Findings {
    pub(crate) fn pass_over(&mut self, kind: &str) {
        *self.passed_over.entry(kind.to_owned()).or_default() += 1;
    }

    /// Joins budgets, attached policies and defaults with the routes that they are for.
    pub(crate) fn join(mut self, unread: &mut Vec<Unread>) -> RetryConfig {
        envoy_gateway::attach(&mut self, unread);
        // A ServiceProfile puts annotations out of effect.
        let profiled = std::mem::take(&mut self.profiled);
        self.policies.retain(|policy| {
            let annotated = policy.dialect == Dialect::Linkerd && policy.budget.is_none();
            !(annotated && profiled.iter().any(|service| service.means(&policy.callee)))
        });
        let istio_default = self.istio.default_policy(&mut self.policies);
        for policy in self.policies.iter_mut().filter(|policy| !policy.dialect.is_client()) {
            let loosest = CalleeBudget::loosest(&self.budgets, &policy.callee);
            policy.budget = policy.budget.or(loosest);
        }
        RetryConfig {
            policies: self.policies,
            budgets: self.budgets,
            istio_default,
            unread: Vec::new(),
            passed_over: self.passed_over,
        }
    }
}
