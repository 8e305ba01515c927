//! What belongs to one connection and not to the message: taken out before it is passed on.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
const UPGRADE: HeaderValue = HeaderValue::from_static("upgrade");

/// Takes out what `connection` names, and of `connection` itself all but that an upgrade is asked for:
/// before anything is written into a request that a client could name there.
pub(crate) fn strip_named(headers: &mut HeaderMap) {
    if headers.contains_key(header::CONNECTION) {
        strip_those_named(headers);
    }
}

#[cold]
fn strip_those_named(headers: &mut HeaderMap) {
    let mut upgrades = false;
    for name in named(headers) {
        match name {
            header::UPGRADE => upgrades = true,
            name => drop(headers.remove(name)),
        }
    }
    headers.remove(header::CONNECTION);
    if upgrades {
        headers.insert(header::CONNECTION, UPGRADE);
    }
}

/// What `connection` names, but for what is not for the connection whoever names it.
fn named(headers: &HeaderMap) -> Vec<HeaderName> {
    let lines = headers.get_all(header::CONNECTION).iter();
    lines
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| *name != header::TE && *name != header::HOST)
        .collect()
}

/// Takes out the fields of the connection, those that `connection` names included (RFC 9110,
/// section 7.6.1). `te: trailers` stays: gRPC asks for it, and trailers are passed on.
pub(crate) fn strip(headers: &mut HeaderMap) {
    if is_any_of_connection(headers) {
        strip_some(headers);
    }
}

/// Whether there is anything to strip.
pub(crate) fn is_any_of_connection(headers: &HeaderMap) -> bool {
    headers.keys().any(is_of_connection)
}

/// [`strip`] for a request that asks to upgrade its connection: that is asked of the next one too.
pub(crate) fn strip_but_upgrade(headers: &mut HeaderMap) {
    let upgrade = headers.get(header::UPGRADE).cloned();
    strip(headers);
    if let Some(upgrade) = upgrade {
        headers.insert(header::UPGRADE, upgrade);
        headers.insert(header::CONNECTION, UPGRADE);
    }
}

#[cold]
fn strip_some(headers: &mut HeaderMap) {
    for name in named(headers) {
        headers.remove(name);
    }
    // Chunks say how long a body is, whatever stands beside them (RFC 9112, section 6.3).
    if headers.contains_key(header::TRANSFER_ENCODING) {
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in [
        header::CONNECTION,
        KEEP_ALIVE,
        PROXY_CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ] {
        headers.remove(name);
    }
    let trailers = |line: &HeaderValue| {
        let mut parts = line.as_bytes().split(|&byte| byte == b',');
        parts.any(|part| part.trim_ascii().eq_ignore_ascii_case(b"trailers"))
    };
    if headers.get_all(header::TE).iter().any(trailers) {
        headers.insert(header::TE, HeaderValue::from_static("trailers"));
    } else {
        headers.remove(header::TE);
    }
}

fn is_of_connection(name: &HeaderName) -> bool {
    name == header::CONNECTION
        || name == header::TE
        || name == header::TRANSFER_ENCODING
        || name == header::UPGRADE
        || name == KEEP_ALIVE
        || name == PROXY_CONNECTION
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(lines: &[(&str, &str)]) -> HeaderMap {
        let parsed = |name: &str| name.parse::<HeaderName>().expect("a name");
        let line = |(name, value): &(&str, &str)| (parsed(name), value.parse().expect("a value"));
        lines.iter().map(line).collect()
    }

    #[test]
    fn what_a_client_names_goes_before_anything_is_written() {
        fn check(before: &[(&str, &str)], after: &[(&str, &str)]) {
            let mut headers = map(before);
            strip_named(&mut headers);
            assert_eq!(headers, map(after), "{before:?}");
        }
        check(&[("upgrade", "websocket")], &[("upgrade", "websocket")]);
        check(&[("connection", "x, Via"), ("x", "1"), ("via", "1.1 a")], &[]);
        check(
            &[("connection", "host, te"), ("host", "b"), ("te", "x")],
            &[("host", "b"), ("te", "x")],
        );
        check(
            &[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")],
            &[("connection", "upgrade"), ("upgrade", "websocket")],
        );
    }

    #[test]
    fn fields_of_the_connection_go_and_all_others_stay() {
        fn check(before: &[(&str, &str)], after: &[(&str, &str)]) {
            let mut headers = map(before);
            strip(&mut headers);
            assert_eq!(headers, map(after), "{before:?}");
        }
        check(&[], &[]);
        check(&[("host", "b"), ("x", "1")], &[("host", "b"), ("x", "1")]);
        check(&[("connection", "close"), ("x", "1")], &[("x", "1")]);
        check(&[("connection", "x, Keep-Alive"), ("x", "1"), ("keep-alive", "timeout=5")], &[]);
        check(&[("connection", "x"), ("connection", "y"), ("x", "1"), ("y", "2")], &[]);
        check(&[("te", "trailers"), ("connection", "te")], &[("te", "trailers")]);
        check(&[("te", "gzip, Trailers;q=1")], &[]);
        check(&[("te", "gzip, trailers")], &[("te", "trailers")]);
        check(&[("transfer-encoding", "chunked"), ("proxy-connection", "close")], &[]);
        check(&[("upgrade", "websocket"), ("connection", "upgrade")], &[]);
        check(&[("connection", "a b, , x"), ("x", "1")], &[]);
        check(&[("connection", "host"), ("host", "b")], &[("host", "b")]);
        check(&[("transfer-encoding", "chunked"), ("content-length", "3")], &[]);
    }

    #[test]
    fn an_upgrade_is_asked_of_the_next_connection() {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
        headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        strip_but_upgrade(&mut headers);
        assert_eq!(headers[header::CONNECTION], "upgrade");
        assert_eq!(headers[header::UPGRADE], "websocket");
    }
}
