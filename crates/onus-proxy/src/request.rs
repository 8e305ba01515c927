//! Requests that are refused because two readers could understand them in two ways.

use http::header::{CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING};
use http::{HeaderMap, Method, Request, Version};
use hyper::ext::Protocol;

use crate::answer::OwnError;
use crate::client_error::ClientError;
use crate::tunnel::is_foreign;

/// A request that goes no further.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) error: OwnError,
    /// As it is counted.
    pub(crate) what: ClientError,
}

impl Refused {
    fn ambiguous(detail: &str) -> Self {
        Self { error: OwnError::malformed(detail), what: ClientError::Ambiguous }
    }
}

/// Whether a request has one meaning only, and no more than so many header fields.
///
/// What the parser of the connection refuses does not come here: lengths that contradict each
/// other, a length beside chunks, characters that belong in no header, too many fields in HTTP/1.1.
pub(crate) fn refuse_ambiguous<B>(request: &Request<B>, fields_max: usize) -> Result<(), Refused> {
    let (mut host, mut coding, mut length) = (None, None, None);
    for (name, value) in request.headers() {
        if *name == HOST && host.replace(value).is_some() {
            return Err(Refused::ambiguous("the request has two Host fields"));
        }
        if *name == CONTENT_LENGTH && length.replace(value).is_some() {
            return Err(Refused::ambiguous("the request has two Content-Length fields"));
        }
        if *name == TRANSFER_ENCODING {
            let is_chunked = value.as_bytes().eq_ignore_ascii_case(b"chunked");
            if !is_chunked || coding.replace(value).is_some() {
                let detail = "the request has a transfer coding beside plain chunks";
                return Err(Refused::ambiguous(detail));
            }
        }
    }
    let is_http2 = request.version() == Version::HTTP_2;
    if is_http2 && request.headers().len() > fields_max && fields(request.headers()) > fields_max {
        return Err(Refused { error: OwnError::large(), what: ClientError::LargeHead });
    }
    match (request.uri().authority(), host) {
        // With an authority in an HTTP/1.1 target, that counts and the Host is replaced.
        (Some(authority), host) => {
            let same = |host: &[u8]| host.eq_ignore_ascii_case(authority.as_str().as_bytes());
            if is_http2 && host.is_some_and(|host| !same(host.as_bytes())) {
                return Err(Refused::ambiguous("the request has a Host beside its :authority"));
            }
            if !is_host(authority.as_str().as_bytes()) {
                return Err(Refused::ambiguous("the request is for no host"));
            }
        }
        (None, Some(host)) if !is_host(host.as_bytes()) => {
            return Err(Refused::ambiguous("the request is for no host"));
        }
        (None, None) if request.version() == Version::HTTP_11 => {
            return Err(Refused::ambiguous("the request has no Host"));
        }
        (None, Some(_) | None) => {}
    }
    if *request.method() == Method::CONNECT
        && let Some(protocol) = request.extensions().get::<Protocol>()
        && !is_foreign(protocol.as_str())
    {
        return Err(Refused::ambiguous("the request asks for a protocol that no tunnel has"));
    }
    Ok(())
}

/// How many header fields there are; cookies are one, in however many lines.
fn fields(headers: &HeaderMap) -> usize {
    headers.len() - headers.get_all(COOKIE).iter().skip(1).count()
}

/// Whether this is a host, with a port or without, and nobody's name and password beside it (RFC 9110,
/// section 7.2). It may be empty there.
fn is_host(text: &[u8]) -> bool {
    let colon = text.iter().rposition(|&byte| byte == b':').filter(|_| !text.ends_with(b"]"));
    let (name, port) = match colon {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &[][..]),
    };
    let address = name.strip_prefix(b"[").and_then(|name| name.strip_suffix(b"]"));
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~%!$&'()*+,;=".contains(byte);
    port.iter().all(u8::is_ascii_digit)
        && match address {
            Some(address) => address.iter().all(|byte| *byte == b':' || is_name(byte)),
            None => name.iter().all(is_name),
        }
}

#[cfg(test)]
mod tests {
    use http::request::Builder;

    use super::*;

    #[test]
    fn a_request_with_two_meanings_is_refused() {
        fn check(request: Builder, version: Version, is_refused: bool) {
            let request = request.version(version).body(()).unwrap();
            assert_eq!(refuse_ambiguous(&request, 10).is_err(), is_refused, "{request:?}");
        }
        const H1: Version = Version::HTTP_11;
        const H2: Version = Version::HTTP_2;
        let path = || Request::get("/");
        let whole = || Request::get("http://a/");
        check(path().header("host", "a"), H1, false);
        check(path().header("host", "a").header("host", "a"), H1, true);
        check(path(), H1, true);
        check(path(), Version::HTTP_10, false);
        check(whole(), H1, false);
        check(whole().header("host", "b"), H1, false);
        check(whole(), H2, false);
        check(whole().header("host", "A"), H2, false);
        check(whole().header("host", "b"), H2, true);
        check(path().header("host", "b"), H2, false);
        check(path().header("host", "b").header("host", "b"), H2, true);
        check(Request::get("http://me:pw@a/"), H1, true);
        check(Request::get("http://me@a/"), H2, true);
        for (host, is_refused) in [
            ("", false),
            ("a.b-c_d:80", false),
            ("a:", false),
            ("[::1]", false),
            ("[fe80::1%25eth0]:80", false),
            ("10.0.0.1:80", false),
            ("me@a", true),
            ("me:pw@a", true),
            ("a/b", true),
            ("a b", true),
            ("a?b", true),
            ("a:80:81", true),
            ("a:http", true),
            ("::1", true),
            ("[::1", true),
        ] {
            check(path().header("host", host), H1, is_refused);
        }
        let twice = path().header("host", "a").header("content-length", "5");
        check(twice.header("content-length", "5"), H2, true);
        let coded = |coding: &str| path().header("host", "a").header("transfer-encoding", coding);
        check(coded("chunked"), H1, false);
        check(coded("Chunked"), H1, false);
        check(coded("gzip, chunked"), H1, true);
        check(coded("chunked, chunked"), H1, true);
        check(coded("chunked").header("transfer-encoding", "chunked"), H1, true);
        check(coded("identity"), H1, true);
        check(coded(" chunked"), H1, true);
    }

    #[test]
    fn a_request_of_too_many_fields_is_refused_in_both_versions() {
        let many = |count| {
            let fields = (0..count).map(|n| (format!("x-{n}"), "1"));
            let request = Request::get("http://a/").version(Version::HTTP_2);
            fields.fold(request, |request, (name, value)| request.header(name, value))
        };
        assert!(refuse_ambiguous(&many(10).body(()).unwrap(), 10).is_ok());
        let crumbs = (0..90).fold(many(9), |request, _| request.header("cookie", "a=1"));
        assert!(refuse_ambiguous(&crumbs.body(()).unwrap(), 10).is_ok());
        let refused = refuse_ambiguous(&many(11).body(()).unwrap(), 10).unwrap_err();
        assert_eq!(refused.what, ClientError::LargeHead);
    }

    #[test]
    fn a_tunnel_of_http_is_refused() {
        for (protocol, is_refused) in
            [("websocket", false), ("connect-udp", false), ("h2c", true), ("websocket, h2c", true)]
        {
            let mut request =
                Request::connect("http://a/").version(Version::HTTP_2).body(()).unwrap();
            request.extensions_mut().insert(Protocol::from_static(protocol));
            assert_eq!(refuse_ambiguous(&request, 10).is_err(), is_refused, "{protocol}");
        }
    }
}
