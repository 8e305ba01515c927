//! Any lines of `tracestate`: the token gets in, is read, and comes out again.

#![no_main]

use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;
use onus_agent::correlator::Token;
use onus_agent::trace_context::{insert_token, read_token, remove_token, trace_id};
use onus_agent::wire::{TRACEPARENT, TRACESTATE};

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in data.split(|&byte| byte == b'\n') {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.insert(&TRACEPARENT, value.clone());
            headers.append(&TRACESTATE, value);
        }
    }
    let _ = trace_id(&headers);
    if let Some(token) = read_token(&headers) {
        assert_eq!(Token::parse(token.to_string().as_bytes()), Some(token));
    }
    let token = Token::parse(b"0123456789abcdef").expect("16 hexadecimal digits");
    insert_token(&mut headers, token);
    assert_eq!(read_token(&headers), Some(token));
    assert_eq!(headers.get_all(&TRACESTATE).iter().count(), 1);
    assert!(headers[&TRACESTATE].len() <= 512);
    remove_token(&mut headers);
    assert_eq!(read_token(&headers), None);
});
