//! Objects of Kubernetes: which kind is read by whom.

use super::{Findings, contour, envoy_gateway, gateway_api, istio, linkerd};
use crate::cursor::Cursor;
use crate::unread::Why;

pub(super) fn is_object(at: &Cursor<'_>) -> bool {
    at.node.text("kind").is_some() && at.node.text("apiVersion").is_some()
}

/// Reads an object, or those of a list.
pub(super) fn read(at: &Cursor<'_>, findings: &mut Findings) {
    let kind = at.node.text("kind").unwrap_or_default();
    if kind.ends_with("List") && at.node.get("items").is_some() {
        for item in at.list("items") {
            if is_object(&item) {
                read(&item, findings);
            } else {
                item.unread(Why::Missing("kind"));
            }
        }
        return;
    }
    let group = at.node.text("apiVersion").and_then(|version| version.split_once('/'));
    let group = group.map_or("", |(group, _)| group);
    // The blank parts the object's name from the way into it.
    let object = at.named(format!("{kind} {} ", full_name(at)));
    match (group, kind) {
        ("networking.istio.io", "VirtualService") => istio::virtual_service(&object, findings),
        ("networking.istio.io", "DestinationRule") => istio::destination_rule(&object, findings),
        ("gateway.networking.k8s.io" | "policy.linkerd.io", "HTTPRoute" | "GRPCRoute") => {
            gateway_api::route(&object, findings);
        }
        (
            "gateway.networking.x-k8s.io" | "gateway.networking.k8s.io",
            "XBackendTrafficPolicy" | "BackendTrafficPolicy",
        ) => gateway_api::backend_traffic_policy(&object, findings),
        ("gateway.envoyproxy.io", "BackendTrafficPolicy") => {
            envoy_gateway::backend_traffic_policy(&object, findings);
        }
        ("linkerd.io", "ServiceProfile") => linkerd::service_profile(&object, findings),
        ("projectcontour.io", "HTTPProxy") => contour::http_proxy(&object, findings),
        ("", "Service") if linkerd::is_annotated(&object) => linkerd::service(&object, findings),
        ("", "ConfigMap") if istio::is_mesh_config(&object) => {
            istio::mesh_config(&object, findings);
        }
        _ => match about_retries(&object) {
            Some(field) => field.unread(Why::UnknownKind),
            None => findings.pass_over(kind),
        },
    }
}

/// The namespace that an object is in.
pub(super) fn namespace<'a>(object: &Cursor<'a>) -> Option<&'a str> {
    object.node.get("metadata")?.text("namespace")
}

pub(super) fn name<'a>(object: &Cursor<'a>) -> &'a str {
    object.node.get("metadata").and_then(|metadata| metadata.text("name")).unwrap_or_default()
}

fn full_name(object: &Cursor<'_>) -> String {
    match namespace(object) {
        Some(namespace) => format!("{namespace}/{}", name(object)),
        None => name(object).to_owned(),
    }
}

/// The first field that is about retries by its name. Where clients note who owns a field says
/// nothing about what it holds.
fn about_retries<'a>(at: &Cursor<'a>) -> Option<Cursor<'a>> {
    for (key, value) in at.children() {
        if key == "managedFields" || key == "status" {
            continue;
        }
        let plain = key.to_ascii_lowercase();
        if plain.contains("retry") || plain.contains("retries") {
            return Some(value);
        }
        if let Some(found) = about_retries(&value) {
            return Some(found);
        }
    }
    None
}
