//! What belongs to one connection and not to the message: taken out before it is passed on.

use http::header::{self, HeaderMap, HeaderName, HeaderValue};

const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");

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
        headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

#[cold]
fn strip_some(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .flat_map(|line| line.as_bytes().split(|&byte| byte == b','))
        .filter_map(|name| HeaderName::from_bytes(name.trim_ascii()).ok())
        .filter(|name| name != header::TE)
        .collect();
    for name in named {
        headers.remove(name);
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

    #[test]
    fn fields_of_the_connection_go_and_all_others_stay() {
        fn check(before: &[(&str, &str)], after: &[(&str, &str)]) {
            let map = |lines: &[(&str, &str)]| -> HeaderMap {
                lines
                    .iter()
                    .map(|(name, value)| {
                        (name.parse::<HeaderName>().unwrap(), value.parse().unwrap())
                    })
                    .collect()
            };
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
