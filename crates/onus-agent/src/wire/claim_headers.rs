//! The claim among the headers of an answer: read by the caller, replaced by the callee, hidden
//! from applications and strangers (protocol §5).

use std::iter;

use http::{HeaderMap, HeaderName};
use onus_core::CalleeClaim;

use super::claim_text::{ClaimText, InvalidClaim};
use super::names::{ONUS_CLAIM, ONUS_PREFIX};
use super::{line, put, veto};

/// The headers that hold a claim: `onus-claim`, and one more name where a mesh has its own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClaimHeaders {
    /// A second name, such as `x-uber-error-claim`, read and written like `onus-claim`.
    pub alias: Option<HeaderName>,
}

/// What the headers of a failed answer hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedClaim {
    /// No claim.
    Absent,
    /// This claim.
    Valid(ClaimText),
    /// Something that is no claim; to be counted, and otherwise as if it were absent.
    Invalid(InvalidClaim),
}

impl ClaimHeaders {
    /// Reads the claim of an answer (protocol §5). Several lines with the same claim are one, and
    /// the first of them has the diagnostics; one line that is invalid spoils all.
    #[must_use]
    pub fn read(&self, headers: &HeaderMap) -> ParsedClaim {
        let mut found: Option<ClaimText> = None;
        for name in self.names() {
            for line in headers.get_all(name) {
                let read = match ClaimText::parse(line.as_bytes()) {
                    Ok(read) => read,
                    Err(why) => return ParsedClaim::Invalid(why),
                };
                match &found {
                    None => found = Some(read),
                    Some(first) if first.claim == read.claim => {}
                    Some(_) => return ParsedClaim::Invalid(InvalidClaim::Contradiction),
                }
            }
        }
        found.map_or(ParsedClaim::Absent, ParsedClaim::Valid)
    }

    /// Removes every claim that the application copied onto its answer and puts `claim` there,
    /// nothing for an answer without one (protocol §5: the inbound layer always removes and
    /// replaces). False where the block has no room for it.
    pub fn replace_claim(&self, headers: &mut HeaderMap, claim: Option<&ClaimText>) -> bool {
        let value = claim.map(ClaimText::to_value);
        let written =
            value.is_some_and(|value| self.names().all(|name| put(headers, name, value.clone())));
        if !written {
            for name in self.names() {
                // A claim to be taken out is rare.
                if line(headers, name).is_some() {
                    headers.remove(name);
                }
            }
        }
        written || claim.is_none()
    }

    /// Takes out of an answer what is not meant for the application that called (protocol §5):
    /// the `onus-*` headers and the alias, and with an Unclaimed claim the vetoes which that
    /// callee's Onus wrote. A pushback or rate limit of the callee's application stays.
    pub fn hide_from_handler(&self, headers: &mut HeaderMap, read: &ParsedClaim) {
        self.remove_own(headers);
        if read.is_unclaimed() {
            veto::remove_own(headers);
        }
    }

    /// Takes every `onus-*` header, the alias and both vetoes out of what comes from, or goes to,
    /// the other side of a trust boundary (protocol §5). Whether there was one.
    pub fn strip_untrusted(&self, headers: &mut HeaderMap) -> bool {
        let before = headers.len();
        self.remove_own(headers);
        veto::remove_all(headers);
        headers.len() < before
    }

    fn remove_own(&self, headers: &mut HeaderMap) {
        if let Some(alias) = &self.alias {
            headers.remove(alias);
        }
        // Allocates where there is something to remove only.
        let own: Vec<HeaderName> =
            headers.keys().filter(|name| name.as_str().starts_with(ONUS_PREFIX)).cloned().collect();
        for name in own {
            headers.remove(name);
        }
    }

    fn names(&self) -> impl Iterator<Item = &HeaderName> {
        iter::once(&ONUS_CLAIM).chain(&self.alias)
    }
}

impl ParsedClaim {
    /// What the decision table reads.
    #[must_use]
    pub const fn callee_claim(&self) -> CalleeClaim {
        match self {
            Self::Valid(text) => CalleeClaim::Reply(text.claim),
            Self::Absent | Self::Invalid(_) => CalleeClaim::Missing,
        }
    }

    /// The claim with its diagnostics, if there is a valid one.
    #[must_use]
    pub const fn valid(&self) -> Option<&ClaimText> {
        match self {
            Self::Valid(text) => Some(text),
            Self::Absent | Self::Invalid(_) => None,
        }
    }

    /// Whether the claim is Unclaimed, by whatever kind.
    #[must_use]
    pub const fn is_unclaimed(&self) -> bool {
        self.callee_claim().is_unclaimed()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use onus_core::Claim;

    use super::super::names::{ENVOY_RATELIMITED, GRPC_PUSHBACK, ONUS_ATTEMPT, ONUS_MARK};
    use super::*;

    const ALIAS: &str = "x-uber-error-claim";

    fn with_alias() -> ClaimHeaders {
        ClaimHeaders { alias: Some(HeaderName::from_static(ALIAS)) }
    }

    fn block(lines: &[(&'static str, &str)]) -> HeaderMap {
        let value = |text| HeaderValue::from_str(text).unwrap();
        lines.iter().map(|&(name, text)| (HeaderName::from_static(name), value(text))).collect()
    }

    fn names(headers: &HeaderMap) -> Vec<&str> {
        let mut names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn lines_agree_or_there_is_no_claim() {
        // [wire-7] [wire-10]
        fn check(lines: &[(&'static str, &str)], alone: CalleeClaim, aliased: CalleeClaim) {
            let headers = block(lines);
            assert_eq!(ClaimHeaders::default().read(&headers).callee_claim(), alone, "{lines:?}");
            assert_eq!(with_alias().read(&headers).callee_claim(), aliased, "{lines:?}");
        }
        use CalleeClaim as C;
        const ONUS: &str = "onus-claim";
        check(&[], C::Missing, C::Missing);
        check(&[(ONUS, "claimed")], C::CLAIMED, C::CLAIMED);
        check(&[(ALIAS, "unclaimed")], C::Missing, C::UNCLAIMED);
        check(&[(ONUS, "claimed"), (ONUS, "claimed")], C::CLAIMED, C::CLAIMED);
        check(&[(ONUS, "claimed;hops=1"), (ONUS, "claimed;hops=2")], C::CLAIMED, C::CLAIMED);
        check(&[(ONUS, "claimed"), (ONUS, "unclaimed")], C::Missing, C::Missing);
        check(&[(ONUS, "claimed"), (ONUS, "claimed;kind=silent")], C::Missing, C::Missing);
        check(&[(ONUS, "claimed"), (ONUS, "")], C::Missing, C::Missing);
        check(&[(ONUS, "claimed"), (ALIAS, "claimed")], C::CLAIMED, C::CLAIMED);
        check(&[(ONUS, "claimed"), (ALIAS, "unclaimed")], C::CLAIMED, C::Missing);
        check(&[(ONUS, "claimed"), (ALIAS, "what")], C::CLAIMED, C::Missing);
        check(&[(ONUS, "unclaimed;kind=shield")], C::UNCLAIMED_SHIELD, C::UNCLAIMED_SHIELD);
    }

    #[test]
    fn what_is_no_claim_says_why() {
        // [fault-3]
        fn check(lines: &[&[u8]], expected: &ParsedClaim) {
            let value = |text| HeaderValue::from_bytes(text).unwrap();
            let headers: HeaderMap =
                lines.iter().map(|text| (ONUS_CLAIM.clone(), value(text))).collect();
            assert_eq!(ClaimHeaders::default().read(&headers), *expected);
        }
        check(&[], &ParsedClaim::Absent);
        check(&[b"\xff\xfe"], &ParsedClaim::Invalid(InvalidClaim::Unparsable));
        check(&[b"owned"], &ParsedClaim::Invalid(InvalidClaim::UnknownToken));
        check(&[&[b'c'; 257]], &ParsedClaim::Invalid(InvalidClaim::TooLong));
        let both = ParsedClaim::Invalid(InvalidClaim::Contradiction);
        check(&[b"claimed", b"unclaimed"], &both);
        let first = ClaimText { hops: Some(1), ..ClaimText::new(Claim::Claimed) };
        check(&[b"claimed;hops=1", b"claimed;hops=2"], &ParsedClaim::Valid(first));
    }

    #[test]
    fn a_copied_claim_is_replaced() {
        // [wire-8] [wire-10] [claim-9]
        fn check(
            headers: &ClaimHeaders,
            before: &[(&'static str, &str)],
            claim: Option<Claim>,
            after: &[(&'static str, &str)],
        ) {
            let mut block = block(before);
            headers.replace_claim(&mut block, claim.map(ClaimText::new).as_ref());
            assert_eq!(block, self::block(after), "{before:?}");
        }
        let alone = ClaimHeaders::default();
        let copied = [
            ("onus-claim", "claimed"),
            ("onus-claim", "unclaimed"),
            (ALIAS, "claimed"),
            ("server", "x"),
        ];
        check(&alone, &copied, None, &[(ALIAS, "claimed"), ("server", "x")]);
        check(&with_alias(), &copied, None, &[("server", "x")]);
        let unclaimed = Some(Claim::Unclaimed);
        check(&alone, &[], unclaimed, &[("onus-claim", "unclaimed")]);
        check(
            &with_alias(),
            &copied,
            unclaimed,
            &[("onus-claim", "unclaimed"), (ALIAS, "unclaimed"), ("server", "x")],
        );
    }

    #[test]
    fn the_application_sees_no_claim_and_no_veto_of_ours() {
        // [wire-9]
        fn check(claim: &str, pushback: &str, left: &[&str]) {
            let mut headers = block(&[
                ("onus-claim", claim),
                ("onus-mark", "1"),
                ("onus-later", "1"),
                (ALIAS, claim),
                ("x-envoy-ratelimited", "true"),
                ("grpc-retry-pushback-ms", pushback),
                ("onusness", "1"),
            ]);
            let read = with_alias().read(&headers);
            with_alias().hide_from_handler(&mut headers, &read);
            assert_eq!(names(&headers), left, "{claim} {pushback}");
        }
        let both = ["grpc-retry-pushback-ms", "onusness", "x-envoy-ratelimited"];
        check("unclaimed", "-1", &["onusness"]);
        check("unclaimed;kind=shield", "-1", &["onusness"]);
        check("unclaimed", "100", &["grpc-retry-pushback-ms", "onusness"]);
        check("claimed", "-1", &both);
        check("broken claim", "-1", &both);
    }

    #[test]
    fn nothing_of_ours_crosses_a_trust_boundary() {
        // [trust-1] [trust-2]
        let mut headers = block(&[
            ("onus-later", "1"),
            (ALIAS, "claimed"),
            ("retry-after", "1"),
            ("traceparent", "x"),
        ]);
        for name in [&ONUS_CLAIM, &ONUS_MARK, &ONUS_ATTEMPT, &ENVOY_RATELIMITED, &GRPC_PUSHBACK] {
            headers.append(name, HeaderValue::from_static("1"));
            headers.append(name, HeaderValue::from_static("2"));
        }
        with_alias().strip_untrusted(&mut headers);
        assert_eq!(names(&headers), ["retry-after", "traceparent"]);
    }
}
