//! Requests that are refused because two readers could understand them in two ways.

use http::header::{HOST, TRANSFER_ENCODING};
use http::{Request, Version};

use crate::answer::OwnError;

/// Whether a request has one meaning only.
///
/// What the parser of the connection refuses does not come here: lengths that contradict each
/// other, a length beside chunks, characters that belong in no header.
pub(crate) fn refuse_ambiguous<B>(request: &Request<B>) -> Result<(), OwnError> {
    let (mut host, mut coding) = (None, None);
    for (name, value) in request.headers() {
        if *name == HOST && host.replace(value).is_some() {
            return Err(OwnError::malformed("the request has two Host fields"));
        }
        if *name == TRANSFER_ENCODING {
            let is_chunked = value.as_bytes().eq_ignore_ascii_case(b"chunked");
            if !is_chunked || coding.replace(value).is_some() {
                let detail = "the request has a transfer coding beside plain chunks";
                return Err(OwnError::malformed(detail));
            }
        }
    }
    let authority = request.uri().authority();
    match host {
        // With an authority in an HTTP/1.1 target, that counts and the Host is replaced.
        Some(host) if request.version() == Version::HTTP_2 => {
            let same = |name: &str| host.as_bytes().eq_ignore_ascii_case(name.as_bytes());
            if !authority.is_some_and(|authority| same(authority.as_str())) {
                return Err(OwnError::malformed("the request has a Host beside its :authority"));
            }
        }
        None if authority.is_none() && request.version() == Version::HTTP_11 => {
            return Err(OwnError::malformed("the request has no Host"));
        }
        Some(_) | None => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::request::Builder;

    use super::*;

    #[test]
    fn a_request_with_two_meanings_is_refused() {
        fn check(request: Builder, version: Version, is_refused: bool) {
            let request = request.version(version).body(()).unwrap();
            assert_eq!(refuse_ambiguous(&request).is_err(), is_refused, "{request:?}");
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
        let coded = |coding: &str| path().header("host", "a").header("transfer-encoding", coding);
        check(coded("chunked"), H1, false);
        check(coded("Chunked"), H1, false);
        check(coded("gzip, chunked"), H1, true);
        check(coded("chunked, chunked"), H1, true);
        check(coded("chunked").header("transfer-encoding", "chunked"), H1, true);
        check(coded("identity"), H1, true);
        check(coded(" chunked"), H1, true);
    }
}
