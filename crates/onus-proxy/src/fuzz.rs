//! What fuzz targets call: everything that happens to heads and frames which strangers send.

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::activity::Activity;
use crate::answer::{OwnError, is_grpc};
use crate::flood::Frames;
use crate::forwarding::Forwarding;
use crate::hop;
use crate::hosts::Hosts;
use crate::passing::Passing;
use crate::pool::{to_http1, to_http2};
use crate::request::refuse_ambiguous;
use crate::tail::Filter;

/// Passes a request on whose head is these lines: a method, a target and a version, then fields.
/// Says whether it was one that can be passed on.
///
/// # Panics
///
/// Where something is left in it that it must not have.
pub fn request(text: &[u8]) -> bool {
    let Some(mut request) = parsed(text) else { return false };
    hop::strip_named(request.headers_mut());
    if let Err(refused) = refuse_ambiguous(&request, 100) {
        let _ = refused.error.answer::<()>(is_grpc(request.headers()));
        return false;
    }
    let mut hosts = Hosts::default();
    hosts.insert("peer", 1);
    hosts.insert("peer.shop:8080", 2);
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let authority = request.uri().authority().map(ToString::to_string);
    let name = authority.or_else(|| host.map(str::to_owned)).unwrap_or_default();
    if hosts.find(&name).is_none() {
        let _ = OwnError::unknown_callee(&name).answer::<()>(is_grpc(request.headers()));
    }
    let rules = Forwarding::new("in", "fuzz", true, true, true, Vec::new());
    if let Some(forwarder) = rules.map(|rules| rules.of(([10, 0, 0, 7], 80).into(), false)) {
        assert!(forwarder.pass(&mut request).is_ok(), "it is not here for the second time");
        assert!(forwarder.pass(&mut copy(&request)).is_err(), "{request:?}");
    }
    let asks = request.method() == Method::CONNECT || request.headers().contains_key(UPGRADE);
    let _passing = Passing::through(&mut request);
    if !asks {
        assert!(!request.headers().contains_key(CONNECTION), "{request:?}");
    }
    assert!(!request.headers().contains_key(TRANSFER_ENCODING), "{request:?}");
    let address = ([127, 0, 0, 1], 80).into();
    let mut second = copy(&request);
    to_http1(&mut request, address);
    if request.method() != Method::CONNECT {
        assert!(request.uri().authority().is_none(), "{request:?}");
        assert!(request.headers().get_all(HOST).iter().count() == 1, "{request:?}");
    }
    to_http2(&mut second, address);
    assert!(second.uri().authority().is_some(), "{second:?}");
    assert!(!second.headers().contains_key(HOST), "{second:?}");
    to_http1(&mut second, address);
    true
}

/// Lets the frames of an HTTP/2 connection pass, which come in pieces of this length; says whether
/// its client floods it.
///
/// # Panics
///
/// Where that depends on how they are cut.
pub fn frames(bytes: &[u8], length: usize) -> bool {
    let activity = Activity::default();
    let whole = Frames::new(FRAMES_MAX).pass(bytes, &activity);
    let mut frames = Frames::new(FRAMES_MAX);
    let pieces = bytes.chunks(length.max(1)).try_for_each(|piece| frames.pass(piece, &activity));
    assert_eq!(whole.is_err(), pieces.is_err());
    whole.is_err()
}

/// Reads which lines a reader of the access log asks for; says whether that can be meant.
pub fn tail_query(query: &str) -> bool {
    Filter::parse(query).is_ok()
}

const FRAMES_MAX: u32 = 8;

fn copy(request: &Request<()>) -> Request<()> {
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    copy
}

/// As a parser of connections would hand it over.
fn parsed(text: &[u8]) -> Option<Request<()>> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let mut words = lines.next()?.split(|&byte| byte == b' ');
    let mut request = Request::new(());
    *request.method_mut() = Method::from_bytes(words.next()?).ok()?;
    *request.uri_mut() = Uri::try_from(words.next()?).ok()?;
    *request.version_mut() = match words.next()? {
        b"2" => Version::HTTP_2,
        b"0" => Version::HTTP_10,
        _ => Version::HTTP_11,
    };
    let mut headers = HeaderMap::new();
    for line in lines {
        let at = line.iter().position(|&byte| byte == b':')?;
        let name = HeaderName::from_bytes(&line[..at]).ok()?;
        headers.append(name, HeaderValue::from_bytes(&line[at + 1..]).ok()?);
    }
    *request.headers_mut() = headers;
    Some(request)
}
