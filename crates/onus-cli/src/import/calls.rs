//! Which calls a rule is for, as the sidecar names them.

use onus_retry_config::{Match, Path, Policy};

/// The calls that a policy is for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Calls {
    /// All to a callee.
    All,
    /// Some of them.
    Some(Vec<Call>),
}

/// Calls of one procedure.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call {
    /// The key below `procedures`.
    pub(super) procedure: String,
    /// The template that it needs below `routes`.
    pub(super) template: Option<String>,
}

/// The calls of a policy, and why some of them cannot be named. Without `unsafe_methods` a rule that
/// names no method is for safe ones.
pub(super) fn of(policy: &Policy, unsafe_methods: bool) -> (Calls, Vec<String>) {
    let route = &policy.route;
    if !route.grpc_methods.is_empty() {
        return (Calls::Some(route.grpc_methods.iter().map(|it| grpc(it)).collect()), Vec::new());
    }
    if route.matches.is_empty() || route.matches.iter().any(is_everything) {
        return (Calls::All, Vec::new());
    }
    let (mut calls, mut lost) = (Vec::new(), Vec::new());
    for one in &route.matches {
        match of_match(one, unsafe_methods) {
            Ok(more) => calls.extend(more),
            Err(why) => lost.push(why),
        }
    }
    (Calls::Some(calls), lost)
}

fn is_everything(one: &Match) -> bool {
    let any_path = match &one.path {
        None => true,
        Some(Path::Segments(path) | Path::Prefix(path)) => path == "/",
        Some(Path::Exact(_) | Path::Pattern(_)) => false,
    };
    one.method.is_none() && any_path && one.also.is_empty()
}

fn of_match(one: &Match, unsafe_methods: bool) -> Result<Vec<Call>, String> {
    if !one.also.is_empty() {
        return Err(format!(
            "limited by {}, which procedures know nothing of",
            one.also.join(", ")
        ));
    }
    let templates = match &one.path {
        None => Vec::new(),
        Some(Path::Exact(path)) if is_grpc(path, one.method.as_deref()) => {
            return Ok(vec![grpc(path.trim_start_matches('/'))]);
        }
        Some(Path::Exact(path)) => vec![path.clone()],
        Some(Path::Segments(path) | Path::Prefix(path)) if path == "/" => Vec::new(),
        Some(Path::Segments(path) | Path::Prefix(path)) => {
            let path = path.trim_end_matches('/');
            vec![path.to_owned(), format!("{path}/"), format!("{path}/{{*rest}}")]
        }
        Some(Path::Pattern(pattern)) => {
            return Err(format!("the pattern {pattern} is no route template"));
        }
    };
    // Only the template of the rest has braces that mean something.
    if templates.first().is_some_and(|path| path.contains(['{', '}']) || !path.starts_with('/')) {
        return Err(format!("the path {} is no route template", templates[0]));
    }
    let methods: Vec<&str> = match &one.method {
        Some(method) => vec![method],
        None if unsafe_methods => [&SAFE[..], &UNSAFE[..]].concat(),
        None => SAFE.to_vec(),
    };
    if templates.is_empty() {
        let of_method = |method: &&str| Call { procedure: (*method).to_owned(), template: None };
        return Ok(methods.iter().map(of_method).collect());
    }
    let each = methods.iter().flat_map(|method| {
        templates.iter().map(move |template| Call {
            procedure: format!("{method} {template}"),
            template: Some(template.clone()),
        })
    });
    Ok(each.collect())
}

/// A path of gRPC has a package before the service, and its method is POST.
fn is_grpc(path: &str, method: Option<&str>) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let named =
        matches!(parts[..], ["", service, name] if service.contains('.') && !name.is_empty());
    named && method.is_none_or(|method| method == "POST")
}

fn grpc(method: &str) -> Call {
    Call { procedure: format!("/{method}"), template: None }
}

/// TRACE and CONNECT are nobody's calls.
const SAFE: [&str; 3] = ["GET", "HEAD", "OPTIONS"];
const UNSAFE: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: Option<&str>, path: Option<Path>, unsafe_methods: bool, expected: &str) {
        let one = Match { method: method.map(str::to_owned), path, also: Vec::new() };
        let found = match of_match(&one, unsafe_methods) {
            Ok(calls) => {
                let names: Vec<_> = calls.into_iter().map(|call| call.procedure).collect();
                names.join(", ")
            }
            Err(why) => why,
        };
        assert_eq!(found, expected, "{one:?}");
    }

    #[test]
    fn calls_by_method_and_path() {
        let exact = |path: &str| Some(Path::Exact(path.to_owned()));
        let segments = |path: &str| Some(Path::Segments(path.to_owned()));
        for (method, path, unsafe_methods, expected) in [
            (Some("GET"), None, false, "GET"),
            (Some("POST"), exact("/pay"), false, "POST /pay"),
            (None, exact("/pay"), false, "GET /pay, HEAD /pay, OPTIONS /pay"),
            (
                None,
                exact("/pay"),
                true,
                "GET /pay, HEAD /pay, OPTIONS /pay, POST /pay, PUT /pay, PATCH /pay, DELETE /pay",
            ),
            (Some("GET"), segments("/v2/"), false, "GET /v2, GET /v2/, GET /v2/{*rest}"),
            (Some("PUT"), segments("/"), false, "PUT"),
            (None, exact("/shop.Cart/Add"), false, "/shop.Cart/Add"),
            (Some("GET"), exact("/shop.Cart/Add"), false, "GET /shop.Cart/Add"),
            (None, exact("/{x}"), false, "the path /{x} is no route template"),
            (None, exact(""), false, "the path  is no route template"),
        ] {
            check(method, path, unsafe_methods, expected);
        }
        let pattern = Some(Path::Pattern("/v[0-9]+".to_owned()));
        check(None, pattern, false, "the pattern /v[0-9]+ is no route template");
    }
}
