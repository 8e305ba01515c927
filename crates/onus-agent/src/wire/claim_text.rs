//! The text of one claim, `unclaimed;reason=exhausted;attempt=1;origin="payments";hops=2`.

use std::sync::Arc;

use http::HeaderValue;
use onus_core::{Claim, ClaimReason};

use super::structured::{self, BareItem, Malformed};

/// The longest claim, in bytes.
pub const CLAIM_MAX: usize = 256;

/// The longest `origin`, in bytes; a longer one is neither written nor read. A name of the form
/// `namespace/name` in Kubernetes has at most 127.
pub const ORIGIN_MAX: usize = 128;

/// A claim as it stands on the wire (protocol §5). All but `claim` are diagnostics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClaimText {
    /// What the service says of its error.
    pub claim: Claim,
    /// Why it says so.
    pub reason: Option<ClaimReason>,
    /// Which attempt the request was, as the service saw it; 1 or more.
    pub attempt: Option<u32>,
    /// The service that failed first.
    pub origin: Option<Arc<str>>,
    /// How many hops away that was; 255 stands for all beyond.
    pub hops: Option<u8>,
}

impl ClaimText {
    /// A claim without diagnostics.
    #[must_use]
    pub const fn new(claim: Claim) -> Self {
        Self { claim, reason: None, attempt: None, origin: None, hops: None }
    }

    /// Parses one line. Unknown parameters are skipped, and so are known ones whose value is
    /// unknown or of the wrong type. Only an origin allocates.
    pub(super) fn parse(text: &[u8]) -> Result<Self, InvalidClaim> {
        if text.len() > CLAIM_MAX {
            return Err(InvalidClaim::TooLong);
        }
        let (token, mut parameters) = structured::item(text)?;
        let mut kind = None;
        let mut reason = None;
        let mut attempt = None;
        let mut origin = None;
        let mut hops = None;
        while let Some((key, value)) = parameters.next()? {
            match key {
                b"kind" => kind = Kind::from_value(value),
                b"reason" => reason = reason_of(value),
                b"attempt" => attempt = positive(value),
                b"origin" => origin = text_of(value),
                b"hops" => hops = count(value),
                _ => {}
            }
        }
        Ok(Self {
            claim: claim_of(token, kind)?,
            reason,
            attempt,
            origin: origin.and_then(unescaped),
            hops: hops.map(|hops| u8::try_from(hops).unwrap_or(u8::MAX)),
        })
    }

    /// The text for a header, at most [`CLAIM_MAX`] bytes. An origin that does not fit, or is no
    /// printable ASCII, is left out.
    #[must_use]
    pub fn to_value(&self) -> HeaderValue {
        let origin = self.origin.as_deref().filter(|origin| {
            origin.len() <= ORIGIN_MAX && origin.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        });
        self.written(origin)
            .or_else(|| self.written(None))
            .unwrap_or_else(|| HeaderValue::from_static(spelling(self.claim)))
    }

    fn written(&self, origin: Option<&str>) -> Option<HeaderValue> {
        let mut line = Line { bytes: [0; CLAIM_MAX], len: 0 };
        line.push(spelling(self.claim).as_bytes())?;
        if let Some(reason) = self.reason {
            line.push(b";reason=")?;
            line.push(reason.as_str().as_bytes())?;
        }
        if let Some(attempt) = self.attempt.filter(|&attempt| attempt > 0) {
            line.push(b";attempt=")?;
            line.push_number(attempt)?;
        }
        if let Some(origin) = origin {
            line.push(b";origin=\"")?;
            for byte in origin.bytes() {
                if matches!(byte, b'"' | b'\\') {
                    line.push(b"\\")?;
                }
                line.push(&[byte])?;
            }
            line.push(b"\"")?;
        }
        if let Some(hops) = self.hops {
            line.push(b";hops=")?;
            line.push_number(hops.into())?;
        }
        HeaderValue::from_bytes(line.bytes.get(..line.len)?).ok()
    }
}

/// Why a header that is there is no claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InvalidClaim {
    /// A line of more than [`CLAIM_MAX`] bytes.
    TooLong,
    /// A line that is no Structured Field Item.
    Unparsable,
    /// An Item that says neither `claimed` nor `unclaimed`.
    UnknownToken,
    /// A kind that belongs to the other token, or lines with different claims.
    Contradiction,
}

impl InvalidClaim {
    /// Every value, for tables and metric families.
    pub const ALL: [Self; 4] =
        [Self::TooLong, Self::Unparsable, Self::UnknownToken, Self::Contradiction];

    /// The spelling in metrics and logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooLong => "too-long",
            Self::Unparsable => "unparsable",
            Self::UnknownToken => "unknown-token",
            Self::Contradiction => "contradiction",
        }
    }
}

impl From<Malformed> for InvalidClaim {
    fn from(_: Malformed) -> Self {
        Self::Unparsable
    }
}

#[derive(Clone, Copy)]
enum Kind {
    Silent,
    Shield,
}

impl Kind {
    fn from_value(value: BareItem<'_>) -> Option<Self> {
        match token(value)? {
            b"silent" => Some(Self::Silent),
            b"shield" => Some(Self::Shield),
            _ => None,
        }
    }
}

/// The claim of a token with a kind; a kind that belongs to the other token contradicts it.
fn claim_of(value: BareItem<'_>, kind: Option<Kind>) -> Result<Claim, InvalidClaim> {
    let token = token(value).ok_or(InvalidClaim::UnknownToken)?;
    match (token, kind) {
        (b"claimed", None) => Ok(Claim::Claimed),
        (b"claimed", Some(Kind::Silent)) => Ok(Claim::ClaimedSilent),
        (b"unclaimed", None) => Ok(Claim::Unclaimed),
        (b"unclaimed", Some(Kind::Shield)) => Ok(Claim::UnclaimedShield),
        (b"claimed", Some(Kind::Shield)) | (b"unclaimed", Some(Kind::Silent)) => {
            Err(InvalidClaim::Contradiction)
        }
        (_, _) => Err(InvalidClaim::UnknownToken),
    }
}

const fn spelling(claim: Claim) -> &'static str {
    match claim {
        Claim::Claimed => "claimed",
        Claim::ClaimedSilent => "claimed;kind=silent",
        Claim::Unclaimed => "unclaimed",
        Claim::UnclaimedShield => "unclaimed;kind=shield",
    }
}

fn reason_of(value: BareItem<'_>) -> Option<ClaimReason> {
    let token = token(value)?;
    ClaimReason::ALL.into_iter().find(|reason| reason.as_str().as_bytes() == token)
}

fn token(value: BareItem<'_>) -> Option<&[u8]> {
    match value {
        BareItem::Token(token) => Some(token),
        BareItem::String(_) | BareItem::Integer(_) | BareItem::Other => None,
    }
}

fn text_of(value: BareItem<'_>) -> Option<&[u8]> {
    match value {
        BareItem::String(text) => Some(text),
        BareItem::Token(_) | BareItem::Integer(_) | BareItem::Other => None,
    }
}

/// A number from 0 on; one too large is the largest.
fn count(value: BareItem<'_>) -> Option<u32> {
    match value {
        BareItem::Integer(number @ 0..) => Some(u32::try_from(number).unwrap_or(u32::MAX)),
        BareItem::Integer(_) | BareItem::Token(_) | BareItem::String(_) | BareItem::Other => None,
    }
}

fn positive(value: BareItem<'_>) -> Option<u32> {
    count(value).filter(|&number| number > 0)
}

/// The text of a string's inside; `None` for one that is longer than [`ORIGIN_MAX`].
fn unescaped(inside: &[u8]) -> Option<Arc<str>> {
    let mut text = [0; ORIGIN_MAX];
    let mut len = 0;
    let mut bytes = inside.iter();
    while let Some(&byte) = bytes.next() {
        let byte = if byte == b'\\' { *bytes.next()? } else { byte };
        *text.get_mut(len)? = byte;
        len += 1;
    }
    std::str::from_utf8(&text[..len]).ok().map(Arc::from)
}

/// A header's text under construction, on the stack.
struct Line {
    bytes: [u8; CLAIM_MAX],
    len: usize,
}

impl Line {
    fn push(&mut self, text: &[u8]) -> Option<()> {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end)?.copy_from_slice(text);
        self.len = end;
        Some(())
    }

    fn push_number(&mut self, number: u32) -> Option<()> {
        let mut divisor = 10_u32.pow(number.checked_ilog10().unwrap_or(0));
        while divisor > 0 {
            let digit = (number / divisor % 10) as u8;
            self.push(&[b'0' + digit])?;
            divisor /= 10;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use onus_core::Stop;
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<ClaimText, InvalidClaim> {
        ClaimText::parse(text.as_bytes())
    }

    #[test]
    fn token_and_kind_make_the_claim() {
        // [wire-7]
        fn check(text: &str, expected: Result<Claim, InvalidClaim>) {
            assert_eq!(parse(text).map(|text| text.claim), expected, "{text}");
        }
        use Claim::{Claimed, ClaimedSilent, Unclaimed, UnclaimedShield};
        use InvalidClaim::{Contradiction, UnknownToken, Unparsable};
        for (text, claim) in [
            ("claimed", Claimed),
            ("claimed;kind=silent", ClaimedSilent),
            ("unclaimed", Unclaimed),
            ("unclaimed;kind=shield", UnclaimedShield),
            (" claimed;  kind=silent ", ClaimedSilent),
            ("claimed;kind=silent;kind=other", Claimed),
            ("claimed;kind=shield;kind=silent", ClaimedSilent),
            ("unclaimed;kind=loud", Unclaimed),
            ("unclaimed;kind=\"shield\"", Unclaimed),
            ("unclaimed;kind", Unclaimed),
            ("claimed;kind=SILENT", Claimed),
        ] {
            check(text, Ok(claim));
        }
        for (text, why) in [
            ("claimed;kind=shield", Contradiction),
            ("unclaimed;kind=silent", Contradiction),
            ("Claimed", UnknownToken),
            ("claim", UnknownToken),
            ("claimed*", UnknownToken),
            ("\"claimed\"", UnknownToken),
            ("?1", UnknownToken),
            ("1", UnknownToken),
            ("", Unparsable),
            ("claimed;", Unparsable),
            ("claimed;kind=", Unparsable),
            ("claimed;kind=silent;", Unparsable),
            ("claimed; Reason=own", Unparsable),
            ("claimed, claimed", Unparsable),
            ("claimed unclaimed", Unparsable),
            ("claimed;origin=\"a", Unparsable),
            ("claimed\t", Unparsable),
        ] {
            check(text, Err(why));
        }
    }

    #[test]
    fn diagnostics_are_read_where_they_have_the_right_type() {
        // [wire-6]
        fn check(
            parameters: &str,
            reason: Option<ClaimReason>,
            attempt: Option<u32>,
            origin: Option<&str>,
            hops: Option<u8>,
        ) {
            let text = format!("claimed{parameters}");
            let origin = origin.map(Arc::from);
            let expected = ClaimText { claim: Claim::Claimed, reason, attempt, origin, hops };
            assert_eq!(parse(&text), Ok(expected), "{text}");
        }
        let exhausted = Some(ClaimReason::Stopped(Stop::Exhausted));
        check(
            ";reason=exhausted;attempt=2;origin=\"pay/ments\";hops=3",
            exhausted,
            Some(2),
            Some("pay/ments"),
            Some(3),
        );
        check(";hops=0;reason=exhausted", exhausted, None, None, Some(0));
        check(";future=1.5;b=:YQ==:;c=?0;d=%\"%c3%bc\";e=@1;attempt=1", None, Some(1), None, None);
        check(";attempt=1;attempt=7", None, Some(7), None, None);
        check(";attempt=7;attempt=x", None, None, None, None);
        check(";attempt=0", None, None, None, None);
        check(";attempt=-1;hops=-1", None, None, None, None);
        check(";attempt=1.0;hops=1.0", None, None, None, None);
        check(";attempt=\"1\";hops=a;reason=\"own\";origin=payments", None, None, None, None);
        check(";attempt=999999999999999;hops=256", None, Some(u32::MAX), None, Some(u8::MAX));
        check(";reason=unheard-of", None, None, None, None);
        check(r#";origin="a\"b\\""#, None, None, Some(r#"a"b\"#), None);
        check(";origin=\"\"", None, None, Some(""), None);
        let longest = "o".repeat(ORIGIN_MAX);
        check(&format!(";origin=\"{longest}\""), None, None, Some(&longest), None);
        check(&format!(";origin=\"{longest}o\""), None, None, None, None);
    }

    #[test]
    fn every_reason_is_read_as_it_is_written() {
        // [wire-2]
        for reason in ClaimReason::ALL {
            let text = ClaimText { reason: Some(reason), ..ClaimText::new(Claim::Unclaimed) };
            let written = format!("unclaimed;reason={}", reason.as_str());
            assert_eq!(text.to_value(), written);
            assert_eq!(parse(&written), Ok(text));
        }
    }

    #[test]
    fn claims_are_written_in_one_order() {
        // [wire-1]
        let full = ClaimText {
            claim: Claim::UnclaimedShield,
            reason: Some(ClaimReason::Operator),
            attempt: Some(10),
            origin: Some(r#"a "b" \c"#.into()),
            hops: Some(255),
        };
        let expected =
            r#"unclaimed;kind=shield;reason=operator;attempt=10;origin="a \"b\" \\c";hops=255"#;
        assert_eq!(full.to_value(), expected);
        assert_eq!(ClaimText::new(Claim::ClaimedSilent).to_value(), "claimed;kind=silent");
        let nil = ClaimText { attempt: Some(0), hops: Some(0), ..ClaimText::new(Claim::Claimed) };
        assert_eq!(nil.to_value(), "claimed;hops=0");
    }

    #[test]
    fn an_origin_that_cannot_be_written_is_left_out() {
        // [wire-5]
        fn check(origin: &str, written: bool) {
            let text = ClaimText {
                claim: Claim::UnclaimedShield,
                reason: Some(ClaimReason::Stopped(Stop::NotReplayable)),
                attempt: Some(u32::MAX),
                origin: Some(origin.into()),
                hops: Some(u8::MAX),
            };
            let value = text.to_value();
            assert!(value.len() <= CLAIM_MAX, "{} bytes", value.len());
            // A reader would drop an origin that is too long as well, and hide it.
            let has_origin = value.as_bytes().windows(7).any(|part| part == b"origin=");
            assert_eq!(has_origin, written, "{origin}");
            let origin = text.origin.clone().filter(|_| written);
            assert_eq!(ClaimText::parse(value.as_bytes()), Ok(ClaimText { origin, ..text }));
        }
        check(&"o".repeat(ORIGIN_MAX), true);
        check(&"o".repeat(ORIGIN_MAX + 1), false);
        check(&"\"".repeat(80), true);
        check(&"\"".repeat(ORIGIN_MAX), false);
        check("payments\n", false);
        check("zahl\u{fc}ngen", false);
    }

    #[test]
    fn claims_have_a_longest_length() {
        let parameter = |len: usize| format!("claimed;x={}", "x".repeat(len - 10));
        assert_eq!(parse(&parameter(CLAIM_MAX)), Ok(ClaimText::new(Claim::Claimed)));
        assert_eq!(parse(&parameter(CLAIM_MAX + 1)), Err(InvalidClaim::TooLong));
    }

    const CLAIMS: [Claim; 4] =
        [Claim::Claimed, Claim::ClaimedSilent, Claim::Unclaimed, Claim::UnclaimedShield];

    fn any_claim() -> impl Strategy<Value = ClaimText> {
        (
            prop::sample::select(&CLAIMS),
            prop::option::of(prop::sample::select(&ClaimReason::ALL)),
            prop::option::of(1..=u32::MAX),
            prop::option::of("[ -~]{0,64}"),
            prop::option::of(any::<u8>()),
        )
            .prop_map(|(claim, reason, attempt, origin, hops)| ClaimText {
                claim,
                reason,
                attempt,
                origin: origin.map(Arc::from),
                hops,
            })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(text in any_claim()) {
            prop_assert_eq!(ClaimText::parse(text.to_value().as_bytes()), Ok(text));
        }

        #[test]
        fn what_is_read_is_written(
            token in "(un)?claimed",
            parameters in prop::collection::vec(
                r#"; {0,2}(kind=(silent|shield|x)|reason=(own|marked|x)|(attempt|hops)=-?[0-9]{1,15}|origin="([ !#-~]|\\")*"|x(=1\.5)?)"#,
                0..6,
            ),
        ) {
            let text = token + &parameters.concat();
            if let Ok(read) = parse(&text) {
                prop_assert_eq!(ClaimText::parse(read.to_value().as_bytes()), Ok(read));
            }
        }

        #[test]
        fn no_text_panics(text in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = ClaimText::parse(&text);
        }
    }
}
