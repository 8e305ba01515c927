//! Any lines of a claim header, and of its alias: nothing panics, and a claim that is read is
//! written so that it is read again.

#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use onus_agent::wire::{CLAIM_MAX, ClaimHeaders, ONUS_CLAIM, ParsedClaim};

static ALIAS: HeaderName = HeaderName::from_static("x-uber-error-claim");

fuzz_target!(|data: &[u8]| {
    let claims = ClaimHeaders { alias: Some(ALIAS.clone()) };
    let mut headers = HeaderMap::new();
    // No header value has a line feed, so it can stand between lines.
    for (number, line) in data.split(|&byte| byte == b'\n').enumerate() {
        let name = if number % 2 == 0 { &ONUS_CLAIM } else { &ALIAS };
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name, value);
        }
    }
    let read = claims.read(&headers);
    if let ParsedClaim::Valid(text) = &read {
        assert!(text.to_value().len() <= CLAIM_MAX);
        claims.replace_claim(&mut headers, Some(text));
        assert_eq!(headers.len(), 2);
        assert_eq!(claims.read(&headers), read);
    }
    claims.hide_from_handler(&mut headers, &read);
    assert!(headers.is_empty());
});
