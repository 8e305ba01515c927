//! Envoy Gateway: policies that are attached to routes and gateways.

use super::Findings;
use super::gateway_api::{Target, target};
use super::kubernetes::namespace;
use crate::condition::Condition;
use crate::cursor::Cursor;
use crate::policy::{Attempts, Backoff, Dialect, Place, Policy};
use crate::unread::{Unread, Why};

/// Retries for the routes that they are attached to.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    place: Place,
    targets: Vec<Target>,
    attempts: Attempts,
    conditions: Vec<Condition>,
    per_try_timeout: Option<std::time::Duration>,
    timeout: Option<std::time::Duration>,
    backoff: Option<Backoff>,
}

pub(super) fn backend_traffic_policy(object: &Cursor<'_>, findings: &mut Findings) {
    let Some(retry) = object.at(&["spec", "retry"]) else {
        findings.pass_over("BackendTrafficPolicy without retries");
        return;
    };
    retry.only(&["numRetries", "numAttemptsPerPriority", "retryOn", "perRetry"]);
    let spec = object.get("spec");
    let list = spec.as_ref().map(|spec| spec.list("targetRefs")).unwrap_or_default();
    let one = object.at(&["spec", "targetRef"]);
    let within = namespace(object);
    let targets = list.iter().chain(&one).map(|it| target(it, "HTTPRoute", within)).collect();
    for selector in spec.iter().flat_map(|spec| spec.list("targetSelectors")) {
        selector.unread(Why::NotFollowed("routes chosen by labels are not followed"));
    }
    let retries = retry.get("numRetries").and_then(|retries| retries.count()).unwrap_or(2);
    let time = |keys: &[&str]| retry.at(keys).and_then(|time| time.duration());
    let base = time(&["perRetry", "backoff", "baseInterval"]);
    let max = time(&["perRetry", "backoff", "maxInterval"]);
    findings.attachments.push(Attachment {
        place: retry.place(),
        targets,
        attempts: Attempts::AtMost(retries.saturating_add(1)),
        conditions: conditions(&retry),
        per_try_timeout: time(&["perRetry", "timeout"]),
        timeout: object
            .at(&["spec", "timeout", "http", "requestTimeout"])
            .and_then(|time| time.duration()),
        backoff: base.map(|base| Backoff { base, max }),
    });
}

fn conditions(retry: &Cursor<'_>) -> Vec<Condition> {
    let Some(on) = retry.get("retryOn") else {
        return DEFAULT.into_iter().map(Condition::of_envoy).collect();
    };
    on.only(&["triggers", "httpStatusCodes"]);
    let mut conditions = Vec::new();
    for trigger in on.list("triggers") {
        let Some(word) = trigger.word() else { continue };
        // The statuses themselves stand beside it.
        if word == "retriable-status-codes" {
            continue;
        }
        let condition = Condition::of_envoy(&word);
        if let Condition::Unknown(word) = &condition {
            trigger.unread(Why::UnknownCondition(word.clone()));
        }
        conditions.push(condition);
    }
    let statuses = on.list("httpStatusCodes");
    let statuses = statuses.iter().filter_map(|status| status.count());
    conditions.extend(statuses.filter_map(|it| u16::try_from(it).ok()).map(Condition::Status));
    conditions
}

/// Gives routes the policies that are attached to them: to the route before its gateway, and to
/// none that has retries of its own.
pub(super) fn attach(findings: &mut Findings, unread: &mut Vec<Unread>) {
    let attachments = std::mem::take(&mut findings.attachments);
    let mut used = vec![false; attachments.len()];
    for rule in &findings.routes {
        let wanted = rule.targets.iter().find_map(|wanted| {
            attachments.iter().position(|attachment| attachment.targets.contains(wanted))
        });
        for (used, attachment) in used.iter_mut().zip(&attachments) {
            *used |= rule.targets.iter().any(|target| attachment.targets.contains(target));
        }
        let Some(index) = wanted.filter(|_| !rule.has_retries) else { continue };
        let attachment = &attachments[index];
        for (callee, port) in &rule.callees {
            findings.policies.push(Policy {
                place: attachment.place.clone(),
                dialect: Dialect::EnvoyGateway,
                caller: rule.caller.clone(),
                callee: callee.clone(),
                port: *port,
                route: rule.route.clone(),
                attempts: attachment.attempts,
                conditions: attachment.conditions.clone(),
                budget: None,
                per_try_timeout: attachment.per_try_timeout,
                timeout: attachment.timeout,
                backoff: attachment.backoff,
                by_default: false,
            });
        }
    }
    for (attachment, _) in attachments.iter().zip(used).filter(|(_, used)| !used) {
        let names: Vec<_> = attachment
            .targets
            .iter()
            .map(|target| format!("a route of {} {}", target.kind, target.service))
            .collect();
        let why = Why::Unattached(names.join(", "));
        unread.push(Unread { place: attachment.place.clone(), why });
    }
}

/// What it retries unless told otherwise.
const DEFAULT: [&str; 5] = ["connect-failure", "refused-stream", "unavailable", "cancelled", "503"];
