//! Which attempt of a call a request is, and whether it carries the mark (protocol §5, §6).

use http::{HeaderMap, HeaderName, HeaderValue};

use super::names::{
    ENVOY_ATTEMPT_COUNT, ENVOY_EXPECTED_TIMEOUT, GRPC_PREVIOUS_ATTEMPTS, GRPC_TIMEOUT,
    ONUS_ATTEMPT, ONUS_MARK, ONUS_PREFIX,
};
use super::{put, structured};

/// Which attempt a request is, as its callee sees it (protocol §5): the largest number that
/// anyone below or above Onus wrote, 1 where nobody did. What is no number is ignored.
#[must_use]
pub fn attempt_seen(headers: &HeaderMap) -> u32 {
    let onus = largest(headers, &ONUS_ATTEMPT, |text| {
        structured::integer(text).filter(|&number| number > 0)
    });
    let envoy = largest(headers, &ENVOY_ATTEMPT_COUNT, digits);
    let grpc = largest(headers, &GRPC_PREVIOUS_ATTEMPTS, digits);
    let seen = onus.max(envoy).max(grpc.map(|previous| previous.saturating_add(1)));
    seen.map_or(1, |seen| u32::try_from(seen).unwrap_or(u32::MAX)).max(1)
}

/// What a request carries, by the names of its headers. One pass over the names costs less than
/// a look-up for each, and most requests carry nothing of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Its number as an attempt, by whatever name, or the mark.
    pub attempt_or_mark: bool,
    /// The time that it allows.
    pub time: bool,
}

impl Carried {
    /// Looks through the names.
    #[inline]
    #[must_use]
    pub fn by(headers: &HeaderMap) -> Self {
        let mut carried = Self::default();
        for name in headers.keys().map(HeaderName::as_str) {
            match name.as_bytes().first() {
                Some(b'o') => carried.attempt_or_mark |= name.starts_with(ONUS_PREFIX),
                Some(b'x') => {
                    carried.attempt_or_mark |= name == ENVOY_ATTEMPT_COUNT.as_str();
                    carried.time |= name == ENVOY_EXPECTED_TIMEOUT.as_str();
                }
                Some(b'g') => {
                    carried.attempt_or_mark |= name == GRPC_PREVIOUS_ATTEMPTS.as_str();
                    carried.time |= name == GRPC_TIMEOUT.as_str();
                }
                Some(_) | None => {}
            }
        }
        carried
    }
}

/// Writes which attempt a request is: nothing for the first, whatever the application copied
/// (protocol §5).
pub fn write_attempt(headers: &mut HeaderMap, attempt: u32) {
    let value = match attempt {
        0 | 1 => {
            headers.remove(&ONUS_ATTEMPT);
            return;
        }
        // The commonest retry has no number to format.
        2 => HeaderValue::from_static("2"),
        3.. => HeaderValue::from(attempt),
    };
    put(headers, &ONUS_ATTEMPT, value);
}

/// How many attempts there were before this one, as gRPC libraries say; 0 where they do not.
#[must_use]
pub fn previous_attempts(headers: &HeaderMap) -> u32 {
    let previous = largest(headers, &GRPC_PREVIOUS_ATTEMPTS, digits).unwrap_or(0);
    u32::try_from(previous).unwrap_or(u32::MAX)
}

/// Tells a callee that speaks gRPC, with or without Onus, how many attempts there were before this
/// one, as gRPC libraries do, where the application has not said it (attempt-12).
pub fn write_previous_attempts(headers: &mut HeaderMap, previous: u32) {
    if previous > previous_attempts(headers) {
        put(headers, &GRPC_PREVIOUS_ATTEMPTS, HeaderValue::from(previous));
    }
}

/// Whether a request carries the mark (protocol §6).
#[must_use]
pub fn is_marked(headers: &HeaderMap) -> bool {
    headers.get_all(&ONUS_MARK).iter().any(|line| structured::integer(line.as_bytes()) == Some(1))
}

/// Writes the mark, or removes one that the application copied (protocol §6).
pub fn write_mark(headers: &mut HeaderMap, marked: bool) {
    if marked {
        put(headers, &ONUS_MARK, HeaderValue::from_static("1"));
    } else {
        headers.remove(&ONUS_MARK);
    }
}

fn largest(
    headers: &HeaderMap,
    name: &HeaderName,
    parse: impl Fn(&[u8]) -> Option<i64>,
) -> Option<i64> {
    headers.get_all(name).iter().filter_map(|line| parse(line.as_bytes())).max()
}

fn digits(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii();
    let number = !text.is_empty() && text.len() <= 15 && text.iter().all(u8::is_ascii_digit);
    number.then(|| text.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let lines = lines.iter();
        lines
            .map(|&(name, text)| (HeaderName::from_static(name), HeaderValue::from_static(text)))
            .collect()
    }

    #[test]
    fn attempts_before_are_written_where_the_application_says_less() {
        // [attempt-12]; what it says, how that is read, the attempts before, and what is written.
        for (told, read, previous, written) in [
            (None, 0, 0, None),
            (None, 0, 1, Some("1")),
            (None, 0, 2, Some("2")),
            (Some("2"), 2, 2, Some("2")),
            (Some("2"), 2, 4, Some("4")),
            (Some("many"), 0, 0, Some("many")),
            (Some("many"), 0, 1, Some("1")),
            (Some("4294967296"), u32::MAX, u32::MAX, Some("4294967296")),
        ] {
            let told = told.map(|told| ("grpc-previous-rpc-attempts", told));
            let mut headers = block(told.as_slice());
            assert_eq!(previous_attempts(&headers), read, "{told:?}");
            write_previous_attempts(&mut headers, previous);
            let all: Vec<_> = headers.get_all(&GRPC_PREVIOUS_ATTEMPTS).iter().collect();
            assert_eq!(all, written.into_iter().collect::<Vec<_>>(), "{told:?}, {previous} before");
        }
    }

    #[test]
    fn the_largest_number_counts() {
        // [attempt-2] [wire-17]
        fn check(lines: &[(&'static str, &'static str)], attempt: u32) {
            let headers = block(lines);
            assert_eq!(attempt_seen(&headers), attempt, "{lines:?}");
            assert_eq!(Carried::by(&headers).attempt_or_mark, !lines.is_empty(), "{lines:?}");
        }
        const ONUS: &str = "onus-attempt";
        const ENVOY: &str = "x-envoy-attempt-count";
        const GRPC: &str = "grpc-previous-rpc-attempts";
        check(&[], 1);
        check(&[(ONUS, "2")], 2);
        check(&[(ENVOY, "3")], 3);
        check(&[(GRPC, "3")], 4);
        check(&[(GRPC, "0")], 1);
        check(&[(ONUS, "2"), (ENVOY, "4"), (GRPC, "1")], 4);
        check(&[(ONUS, "5"), (ENVOY, "4"), (GRPC, "3")], 5);
        check(&[(ONUS, "2"), (ENVOY, "1"), (GRPC, "2")], 3);
        check(&[(ONUS, "2;x=1")], 2);
        check(&[(ONUS, "2"), (ONUS, "3")], 3);
        check(&[(ONUS, "-2"), (ENVOY, "two"), (GRPC, "")], 1);
        check(&[(ONUS, "0"), (ENVOY, "0")], 1);
        check(&[(ONUS, "2.0"), (ENVOY, "-1"), (GRPC, "1.5")], 1);
        check(&[(ONUS, "2, 3"), (ENVOY, "+7")], 1);
        check(&[(ENVOY, "4294967296")], u32::MAX);
        check(&[(GRPC, "4294967295")], u32::MAX);
        check(&[(ENVOY, "99999999999999999999999999")], 1);
    }

    #[test]
    fn attempts_are_written_from_the_second_on() {
        // [attempt-1]
        for (attempt, written) in [(0, None), (1, None), (2, Some("2")), (17, Some("17"))] {
            let mut headers = block(&[("onus-attempt", "9"), ("onus-attempt", "8")]);
            write_attempt(&mut headers, attempt);
            let found: Vec<_> = headers.get_all(&ONUS_ATTEMPT).iter().collect();
            assert_eq!(found, written.into_iter().collect::<Vec<_>>(), "attempt {attempt}");
        }
    }

    #[test]
    fn marks_are_read_as_they_are_written() {
        // [mark-2]
        for (text, marked) in
            [("1", true), ("1;x", true), ("0", false), ("true", false), ("?1", false), ("", false)]
        {
            let mut headers = block(&[("onus-mark", text)]);
            assert_eq!(is_marked(&headers), marked, "{text}");
            write_mark(&mut headers, true);
            assert_eq!(headers.get_all(&ONUS_MARK).iter().collect::<Vec<_>>(), ["1"]);
            assert!(is_marked(&headers));
            write_mark(&mut headers, false);
            assert!(headers.is_empty());
        }
        assert!(is_marked(&block(&[("onus-mark", "0"), ("onus-mark", "1")])));
        assert!(Carried::by(&block(&[("onus-mark", "1")])).attempt_or_mark);
        let others = block(&[("x-envoy-attempt", "2"), ("grpc-timeout", "2S"), ("on", "1")]);
        assert!(!Carried::by(&others).attempt_or_mark);
    }
}
