//! What a scenario writes as text or number: spans of time, probabilities, latencies.

use std::fmt;

use serde::Deserialize;

use super::random::Random;

/// A span of time in nanoseconds, spelt as a number with its unit: `250us`, `1.5s`, `15m`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Span(pub(crate) u64);

const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("m", 60_000_000_000)];

/// A day: longer spans are mistakes.
const SPAN_MAX: f64 = 86_400e9;

impl Span {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, unit) = text.split_at(digits);
        let (_, nanos) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let nanos = number.parse::<f64>().ok()? * *nanos as f64;
        (nanos <= SPAN_MAX).then_some(Self(nanos.round() as u64))
    }
}

impl TryFrom<String> for Span {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            format!("`{text}` is no span of time; allowed is 0s to 24h, written like 25ms or 1.5s")
        })
    }
}

/// A probability or share.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Deserialize)]
#[serde(try_from = "f64")]
pub(crate) struct Probability(pub(crate) f64);

impl TryFrom<f64> for Probability {
    type Error = String;

    fn try_from(number: f64) -> Result<Self, String> {
        if (0.0..=1.0).contains(&number) {
            return Ok(Self(number));
        }
        Err(format!("{number} is no probability; allowed is 0 to 1"))
    }
}

/// How long something takes: `5ms`, `exponential(5ms)` of this mean, or `lognormal(5ms, 0.8)` of
/// this median and this deviation of the logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(crate) enum Latency {
    Const(Span),
    Exponential(Span),
    LogNormal { median: Span, sigma: f64 },
}

impl Default for Latency {
    fn default() -> Self {
        Self::Const(Span(0))
    }
}

impl Latency {
    /// One span of time, in nanoseconds.
    pub(crate) fn draw(self, random: &mut Random) -> u64 {
        match self {
            Self::Const(span) => span.0,
            Self::Exponential(mean) => (mean.0 as f64 * random.exponential()) as u64,
            Self::LogNormal { median, sigma } => {
                (median.0 as f64 * (sigma * random.normal()).exp()) as u64
            }
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let Some(call) = text.strip_suffix(')') else { return Span::parse(text).map(Self::Const) };
        match call.split_once('(')? {
            ("exponential", mean) => Span::parse(mean).map(Self::Exponential),
            ("lognormal", arguments) => {
                let (median, sigma) = arguments.split_once(',')?;
                let sigma = sigma.trim().parse().ok().filter(|sigma| (0.0..=5.0).contains(sigma));
                Some(Self::LogNormal { median: Span::parse(median)?, sigma: sigma? })
            }
            _ => None,
        }
    }
}

impl TryFrom<String> for Latency {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text).ok_or_else(|| {
            format!(
                "`{text}` is no latency; allowed is 5ms, exponential(5ms) or lognormal(5ms, 0.8), \
                 with a span of 0s to 24h and a deviation of 0 to 5"
            )
        })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", std::time::Duration::from_nanos(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_as_people_write_them() {
        for (text, nanos) in [
            ("0s", Some(0)),
            ("25ms", Some(25_000_000)),
            ("1.5s", Some(1_500_000_000)),
            ("15m", Some(900_000_000_000)),
            ("1440m", Some(86_400_000_000_000)),
            ("1441m", None),
            ("-5ms", None),
            ("5", None),
            ("5h", None),
            ("ms", None),
            ("1.2.3s", None),
        ] {
            assert_eq!(Span::parse(text).map(|span| span.0), nanos, "{text}");
        }
    }

    #[test]
    fn latencies_as_people_write_them() {
        let ms = |n: u64| Span(n * 1_000_000);
        for (text, latency) in [
            ("5ms", Some(Latency::Const(ms(5)))),
            ("exponential(5ms)", Some(Latency::Exponential(ms(5)))),
            ("lognormal(5ms, 0.5)", Some(Latency::LogNormal { median: ms(5), sigma: 0.5 })),
            ("lognormal(5ms)", None),
            ("lognormal(5ms, -1)", None),
            ("gamma(5ms)", None),
            ("exponential(-5ms)", None),
        ] {
            assert_eq!(Latency::parse(text), latency, "{text}");
        }
    }

    #[test]
    fn draws_have_their_mean_or_median() {
        let mut random = Random::new(3, 3);
        let mut draws = |text: &str| {
            let latency = Latency::parse(text).unwrap();
            let mut draws: Vec<_> = (0..50_001).map(|_| latency.draw(&mut random)).collect();
            draws.sort_unstable();
            let mean = draws.iter().sum::<u64>() / draws.len() as u64;
            (mean, draws[draws.len() / 2])
        };
        assert_eq!(draws("7us"), (7_000, 7_000));
        let (mean, _) = draws("exponential(1ms)");
        assert!(mean.abs_diff(1_000_000) < 20_000, "{mean}");
        let (_, median) = draws("lognormal(1ms, 0.8)");
        assert!(median.abs_diff(1_000_000) < 20_000, "{median}");
    }
}
