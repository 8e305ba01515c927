//! What a callee says about being called again: `grpc-retry-pushback-ms` and `Retry-After`
//! (protocol §2, rows 2 and 10).

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderValue};
use onus_core::Pushback;

use super::names::{GRPC_PUSHBACK, RETRY_AFTER};

/// Reads the pushback of a failed answer. Of several waits the longest counts; a refusal
/// and a wait are told both; a `Retry-After` that cannot be read says nothing. `now_wallclock` is for dates.
#[must_use]
pub fn pushback(headers: &HeaderMap, now_wallclock: SystemTime) -> Pushback {
    let grpc = grpc_pushback(headers);
    let lines = headers.get_all(&RETRY_AFTER).iter();
    let after = lines.filter_map(|line| retry_after(line, now_wallclock)).max();
    match (grpc, after) {
        (Pushback::After(grpc), Some(after)) => Pushback::After(grpc.max(after)),
        (Pushback::None, Some(after)) => Pushback::After(after),
        (Pushback::Refused, Some(after)) => Pushback::RefusedAfter(after),
        (grpc, _) => grpc,
    }
}

/// As gRPC libraries read it: what is no number, or not one number, refuses.
fn grpc_pushback(headers: &HeaderMap) -> Pushback {
    let mut lines = headers.get_all(&GRPC_PUSHBACK).iter();
    let Some(line) = lines.next() else { return Pushback::None };
    let wait = line.to_str().ok().and_then(|text| text.trim().parse().ok());
    match wait {
        Some(milliseconds) if lines.next().is_none() => {
            Pushback::After(Duration::from_millis(milliseconds))
        }
        Some(_) | None => Pushback::Refused,
    }
}

/// Seconds, or one of the three forms of an HTTP date; a date that has passed is no wait.
fn retry_after(line: &HeaderValue, now_wallclock: SystemTime) -> Option<Duration> {
    let text = line.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(now_wallclock).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Sun, 06 Nov 1994 08:49:37 GMT, the date of RFC 9110's examples.
    const NOW: Duration = Duration::from_secs(784_111_777);

    fn read(grpc: &[&str], retry_after: &[&str]) -> Pushback {
        let mut headers = HeaderMap::new();
        for text in grpc {
            headers.append(&GRPC_PUSHBACK, HeaderValue::from_str(text).unwrap());
        }
        for text in retry_after {
            headers.append(&RETRY_AFTER, HeaderValue::from_str(text).unwrap());
        }
        pushback(&headers, SystemTime::UNIX_EPOCH + NOW)
    }

    #[test]
    fn pushback_by_header() {
        fn check(grpc: &[&str], retry_after: &[&str], expected: Pushback) {
            assert_eq!(read(grpc, retry_after), expected, "{grpc:?} {retry_after:?}");
        }
        let after = |seconds: u64| Pushback::After(Duration::from_secs(seconds));
        let after_ms = |milliseconds| Pushback::After(Duration::from_millis(milliseconds));
        check(&[], &[], Pushback::None);
        // [decide-2]
        for refused in ["-1", "-100", "", "soon", "1.5", "1s", "99999999999999999999"] {
            check(&[refused], &[], Pushback::Refused);
            check(&[refused], &["5"], Pushback::RefusedAfter(Duration::from_secs(5)));
        }
        check(&["100", "200"], &[], Pushback::Refused);
        // [decide-4] [decide-14]
        check(&["0"], &[], after_ms(0));
        check(&["100"], &[], after_ms(100));
        check(&["1500"], &["1"], after_ms(1500));
        check(&["1500"], &["2"], after(2));
        check(&["1500"], &["soon"], after_ms(1500));
        check(&[], &["0"], after(0));
        check(&[], &["120"], after(120));
        check(&[], &["007"], after(7));
        check(&[], &["120", "60"], after(120));
        check(&[], &["99999999999999999999"], after(u64::MAX));
        check(&[], &["Sun, 06 Nov 1994 08:49:42 GMT"], after(5));
        check(&[], &["Sunday, 06-Nov-94 08:49:42 GMT"], after(5));
        check(&[], &["Sun Nov  6 08:49:42 1994"], after(5));
        check(&[], &["Sun, 06 Nov 1994 08:49:37 GMT"], after(0));
        check(&[], &["Sun, 06 Nov 1994 08:49:30 GMT"], after(0));
        check(&[], &["Sun, 06 Nov 1994 08:49:30 GMT", "3"], after(3));
        for unparsable in ["", "soon", "-1", "+1", "1.5", "1 s", "Sun, 06 Nov 1994 08:49:42 CET"] {
            check(&[], &[unparsable], Pushback::None);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(grpc in "[ -~]{0,40}", after in "[A-Z][a-z]{2},? [ -~]{0,30}|[ -~]{0,30}") {
            read(&[&grpc], &[&after]);
        }
    }
}
