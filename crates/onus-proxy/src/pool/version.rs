//! What a request says differently in each version of HTTP.

use std::net::SocketAddr;

use http::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};
use http_body::Body;

/// In HTTP/1.1 the target is a path, and the authority a header that every request has.
pub(crate) fn to_http1<B>(request: &mut Request<B>, address: SocketAddr) {
    let is_connect = *request.method() == Method::CONNECT;
    if let Some(authority) = request.uri().authority().map(Authority::as_str)
        && let Ok(host) = HeaderValue::from_str(authority)
    {
        request.headers_mut().insert(HOST, host);
        if !is_connect {
            let path = std::mem::take(request.uri_mut()).into_parts().path_and_query;
            let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
            *request.uri_mut() = Uri::from(path);
        }
    } else if !request.headers().contains_key(HOST)
        && let Ok(host) = HeaderValue::try_from(address.to_string())
    {
        // A client of HTTP/1.0, or of HTTP/2, that says none.
        request.headers_mut().insert(HOST, host);
    }
    if request.version() == Version::HTTP_2 {
        join_cookies(request.headers_mut());
    }
    *request.version_mut() = Version::HTTP_11;
}

/// Clients of HTTP/2 may send each cookie in a line of its own; in HTTP/1.1 there is one line (RFC 9113,
/// section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let lines: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    // What came in headers makes a header.
    if let Ok(line) = HeaderValue::from_bytes(&lines.join(&b"; "[..])) {
        headers.insert(COOKIE, line);
    }
}

/// A body of unknown length goes in chunks whatever the method: hyper sends none with GET and HEAD
/// unless it is told to.
pub(super) fn frame_body<B: Body>(request: &mut Request<B>) {
    let body = request.body();
    if matches!(*request.method(), Method::GET | Method::HEAD)
        && !body.is_end_stream()
        && body.size_hint().exact().is_none()
        && !request.headers().contains_key(CONTENT_LENGTH)
    {
        let chunked = HeaderValue::from_static("chunked");
        request.headers_mut().insert(TRANSFER_ENCODING, chunked);
    }
}

/// In HTTP/2 the authority is a part of the target.
pub(crate) fn to_http2<B>(request: &mut Request<B>, address: SocketAddr) {
    let host = request.headers_mut().remove(HOST);
    if request.uri().authority().is_none() {
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        let host = host.and_then(|host| Authority::from_maybe_shared(host).ok());
        parts.authority = host.or_else(|| Authority::try_from(address.to_string()).ok());
        parts.scheme.get_or_insert(Scheme::HTTP);
        parts.path_and_query.get_or_insert_with(|| PathAndQuery::from_static("/"));
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
    }
    *request.version_mut() = Version::HTTP_2;
}
