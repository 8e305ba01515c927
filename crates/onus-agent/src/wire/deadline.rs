//! The time that a caller allows: `grpc-timeout` and `x-envoy-expected-rq-timeout-ms`
//! (protocol §6).

use std::io::Write;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};

use super::names::{ENVOY_EXPECTED_TIMEOUT, GRPC_TIMEOUT};
use super::put;

/// The time that a request allows, the shortest where several headers say it; `None` where none
/// does, or none that can be read.
#[must_use]
pub fn time_allowed(headers: &HeaderMap) -> Option<Duration> {
    let grpc = headers.get_all(&GRPC_TIMEOUT).iter().filter_map(parse_grpc);
    let envoy = headers.get_all(&ENVOY_EXPECTED_TIMEOUT).iter().filter_map(parse_envoy);
    grpc.chain(envoy).min()
}

/// Writes the time that an attempt is allowed into the header of its protocol.
pub fn write_time_allowed(headers: &mut HeaderMap, allowed: Duration, grpc: bool) {
    if grpc {
        put(headers, &GRPC_TIMEOUT, format_grpc(allowed));
    } else {
        put(headers, &ENVOY_EXPECTED_TIMEOUT, format_envoy(allowed));
    }
}

/// Units of `grpc-timeout` with their nanoseconds, the finest first.
const UNITS: [(u8, u128); 6] = [
    (b'n', 1),
    (b'u', 1_000),
    (b'm', 1_000_000),
    (b'S', 1_000_000_000),
    (b'M', 60_000_000_000),
    (b'H', 3_600_000_000_000),
];

/// The most that the eight digits of `grpc-timeout` hold.
const GRPC_MAX: u128 = 99_999_999;

fn parse_grpc(value: &HeaderValue) -> Option<Duration> {
    let (unit, digits) = value.as_bytes().split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    match unit {
        b'n' => Some(Duration::from_nanos(number)),
        b'u' => Some(Duration::from_micros(number)),
        b'm' => Some(Duration::from_millis(number)),
        b'S' => Some(Duration::from_secs(number)),
        b'M' => Some(Duration::from_secs(number * 60)),
        b'H' => Some(Duration::from_secs(number * 3600)),
        _ => None,
    }
}

/// In the finest unit that has room, rounded down: never longer than what is allowed.
fn format_grpc(allowed: Duration) -> HeaderValue {
    let nanos = allowed.as_nanos();
    let fits = |&&(_, unit): &&(u8, u128)| nanos / unit <= GRPC_MAX;
    let &(letter, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[5]);
    let number = (nanos / unit).min(GRPC_MAX);
    formatted(|text| write!(text, "{number}{}", char::from(letter)))
}

/// Zero is Envoy's word for no limit.
fn parse_envoy(value: &HeaderValue) -> Option<Duration> {
    let milliseconds = value.to_str().ok()?.trim().parse().ok().filter(|&number| number > 0)?;
    Some(Duration::from_millis(milliseconds))
}

/// In milliseconds, rounded down but for the last one: zero would be no limit.
fn format_envoy(allowed: Duration) -> HeaderValue {
    let milliseconds = allowed.as_millis().max(1);
    formatted(|text| write!(text, "{milliseconds}"))
}

/// Formats on the stack, so that only the value itself is allocated.
fn formatted(write: impl FnOnce(&mut &mut [u8]) -> std::io::Result<()>) -> HeaderValue {
    let mut text = [0; 24];
    let mut rest = &mut text[..];
    let written = write(&mut rest).map(|()| rest.len());
    let len = written.map_or(0, |left| text.len() - left);
    HeaderValue::from_bytes(&text[..len]).unwrap_or(HeaderValue::from_static("0"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HOUR: u64 = 3600;

    fn block(grpc: Option<&str>, envoy: Option<&str>) -> HeaderMap {
        let grpc = grpc.map(|text| (GRPC_TIMEOUT.clone(), text));
        let envoy = envoy.map(|text| (ENVOY_EXPECTED_TIMEOUT.clone(), text));
        let lines = grpc.into_iter().chain(envoy);
        lines.map(|(name, text)| (name, HeaderValue::from_str(text).unwrap())).collect()
    }

    #[test]
    fn time_is_read_from_either_header() {
        // [deadline-1]
        fn check(grpc: Option<&str>, envoy: Option<&str>, nanos: Option<u64>) {
            let allowed = time_allowed(&block(grpc, envoy));
            assert_eq!(allowed, nanos.map(Duration::from_nanos), "{grpc:?} {envoy:?}");
        }
        const S: u64 = 1_000_000_000;
        check(None, None, None);
        for (text, nanos) in [
            ("0n", 0),
            ("1n", 1),
            ("25u", 25_000),
            ("100m", 100_000_000),
            ("3S", 3 * S),
            ("2M", 120 * S),
            ("1H", HOUR * S),
            ("00000001S", S),
            ("99999999S", 99_999_999 * S),
        ] {
            check(Some(text), None, Some(nanos));
        }
        for text in ["", "S", "1", "1s", "1 S", " 1S", "-1S", "+1S", "1.5S", "000000001S", "1SS"] {
            check(Some(text), None, None);
            check(Some(text), Some("7"), Some(7_000_000));
        }
        check(None, Some("250"), Some(250_000_000));
        for text in ["", "0", "-1", "1.5", "1s", "soon", "99999999999999999999"] {
            check(None, Some(text), None);
        }
        check(Some("1S"), Some("250"), Some(250_000_000));
        check(Some("100m"), Some("250"), Some(100_000_000));
    }

    #[test]
    fn time_is_written_into_the_header_of_the_protocol() {
        // [deadline-2]
        fn check(nanos: u64, grpc: &str, envoy: &str) {
            for (is_grpc, name, text) in
                [(true, &GRPC_TIMEOUT, grpc), (false, &ENVOY_EXPECTED_TIMEOUT, envoy)]
            {
                let mut headers = block(Some("9S"), Some("9"));
                headers.append(name, HeaderValue::from_static("10"));
                write_time_allowed(&mut headers, Duration::from_nanos(nanos), is_grpc);
                let written: Vec<_> = headers.get_all(name).iter().collect();
                assert_eq!(written, [text], "{nanos} ns");
                assert_eq!(headers.len(), 2, "the other protocol's header is not ours");
            }
        }
        check(0, "0n", "1");
        check(1, "1n", "1");
        check(99_999_999, "99999999n", "99");
        check(100_000_001, "100000u", "100");
        check(1_999_999_999, "1999999u", "1999");
        check(100_000_000_000, "100000m", "100000");
        check(100_000 * 1_000_000_000, "100000S", "100000000");
        check(u64::MAX, "5124095H", "18446744073709");
        let mut headers = HeaderMap::new();
        write_time_allowed(&mut headers, Duration::MAX, true);
        assert_eq!(headers["grpc-timeout"], "99999999H");
    }

    proptest! {
        #[test]
        fn never_longer_than_what_is_allowed(nanos in prop_oneof![any::<u64>(), 0_u64..10_000_000_000]) {
            let allowed = Duration::from_nanos(nanos);
            let read = parse_grpc(&format_grpc(allowed)).unwrap();
            prop_assert!(read <= allowed);
            // Eight digits lose less than one part in a hundred thousand.
            prop_assert!(allowed - read <= allowed / 100_000 || allowed - read < Duration::from_micros(1));
            let read = parse_envoy(&format_envoy(allowed)).unwrap();
            prop_assert!(read <= allowed.max(Duration::from_millis(1)));
        }

        #[test]
        fn no_text_panics(text in "[ -~]{0,12}") {
            let _ = time_allowed(&block(Some(&text), Some(&text)));
        }
    }
}
