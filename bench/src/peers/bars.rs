//! What Onus must reach.

use serde::Serialize;

use super::order::Cell;
use super::subject::Filters::{self, ModuleAttempts, ModuleInbound, PluginInbound, PluginOutbound};
use super::subject::Subject::{Bare, Envoy, EnvoyWith, Haproxy, Onus, OnusOff};
use super::work::Work::{
    Http1Error, Http1Large, Http1Rate, Http1Saturation, Http2Large, Http2Saturation,
};

/// A figure of one cell over the same figure of another in the same round; the median of the rounds
/// must not exceed `most`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) name: &'static str,
    pub(crate) figure: Figure,
    pub(crate) of: Cell,
    pub(crate) against: Cell,
    pub(crate) most: f64,
    /// What would be better still.
    pub(crate) aim: Option<f64>,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Figure {
    Cpu,
    P50,
    P99,
}

/// Where bare hyper costs more than this of Envoy, others took part of the machine, and a run says
/// nothing.
pub(crate) const QUIET: Bar = bar(
    "bare hyper against Envoy",
    Figure::Cpu,
    (Http1Saturation, Bare),
    (Http1Saturation, Envoy),
    0.34,
);

/// The bars for requests.
pub(crate) const BARS: [Bar; 15] = [
    bar(
        "HTTP/1.1 small, saturation, against Envoy",
        Figure::Cpu,
        (Http1Saturation, Onus),
        (Http1Saturation, Envoy),
        0.38,
    )
    .aim(0.36),
    bar(
        "HTTP/1.1 small, saturation, against HAProxy",
        Figure::Cpu,
        (Http1Saturation, Onus),
        (Http1Saturation, Haproxy),
        1.15,
    )
    .aim(1.05),
    bar(
        "HTTP/1.1 small, 2,000 a second, against Envoy",
        Figure::Cpu,
        (Http1Rate, Onus),
        (Http1Rate, Envoy),
        0.45,
    ),
    bar("the same, p50", Figure::P50, (Http1Rate, Onus), (Http1Rate, Envoy), 0.5),
    bar("the same, p99", Figure::P99, (Http1Rate, Onus), (Http1Rate, Envoy), 0.6),
    bar(
        "HTTP/2 small, saturation, against Envoy",
        Figure::Cpu,
        (Http2Saturation, Onus),
        (Http2Saturation, Envoy),
        0.70,
    )
    .aim(0.60),
    bar(
        "HTTP/1.1, 64 KiB, against Envoy",
        Figure::Cpu,
        (Http1Large, Onus),
        (Http1Large, Envoy),
        0.5,
    ),
    bar("HTTP/2, 64 KiB, against Envoy", Figure::Cpu, (Http2Large, Onus), (Http2Large, Envoy), 1.1)
        .aim(0.95),
    bar(
        "ownership on against off",
        Figure::Cpu,
        (Http1Saturation, Onus),
        (Http1Saturation, OnusOff),
        1.05,
    )
    .aim(1.03),
    bar(
        "Onus against bare hyper",
        Figure::Cpu,
        (Http1Saturation, Onus),
        (Http1Saturation, Bare),
        1.15,
    ),
    bar(
        "503 with its claim against success",
        Figure::Cpu,
        (Http1Error, Onus),
        (Http1Saturation, Onus),
        1.05,
    ),
    filters("inbound filter of the module against Envoy without filters", ModuleInbound, 1.08),
    filters("outbound filter and that of attempts", ModuleAttempts, 1.20),
    filters("inbound filter of the plugin", PluginInbound, 1.40),
    filters("outbound filter of the plugin", PluginOutbound, 1.40),
];

/// The most memory of a process with one worker in MB: right after its start, and with 1,000 idle
/// connections.
pub(crate) const FRESH_MB: f64 = 15.0;
pub(crate) const IDLE_MB: f64 = 25.0;

const fn filters(name: &'static str, filters: Filters, most: f64) -> Bar {
    let against = (Http1Saturation, Envoy);
    bar(name, Figure::Cpu, (Http1Saturation, EnvoyWith(filters)), against, most)
}

const fn bar(name: &'static str, figure: Figure, of: Cell, against: Cell, most: f64) -> Bar {
    Bar { name, figure, of, against, most, aim: None }
}

impl Bar {
    const fn aim(mut self, aim: f64) -> Self {
        self.aim = Some(aim);
        self
    }
}

/// How a bar was met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Verdict {
    /// And its aim, where it has one.
    Met,
    /// But not its aim.
    MetNotAim,
    Missed,
    /// One of the two was not measured.
    Skipped,
}

/// How a bar was met by a figure.
pub(crate) fn verdict(figure: Option<f64>, most: f64, aim: Option<f64>) -> Verdict {
    match figure {
        None => Verdict::Skipped,
        Some(figure) if figure > most => Verdict::Missed,
        Some(figure) if aim.is_some_and(|aim| figure > aim) => Verdict::MetNotAim,
        Some(_) => Verdict::Met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_met_missed_or_skipped() {
        fn check(figure: Option<f64>, aim: Option<f64>, expected: Verdict) {
            assert_eq!(verdict(figure, 1.15, aim), expected, "{figure:?} {aim:?}");
        }
        check(Some(1.15), None, Verdict::Met);
        check(Some(1.16), None, Verdict::Missed);
        check(Some(1.15), Some(1.05), Verdict::MetNotAim);
        check(Some(1.05), Some(1.05), Verdict::Met);
        check(Some(1.16), Some(1.05), Verdict::Missed);
        check(None, Some(1.05), Verdict::Skipped);
    }

    #[test]
    fn bars_are_of_what_is_measured() {
        for bar in BARS.iter().chain([&QUIET]) {
            for (work, subject) in [bar.of, bar.against] {
                assert!(work.is_for(subject), "{}", bar.name);
                assert_eq!(work.beside(), bar.of.0.beside(), "{}", bar.name);
            }
            assert!(bar.aim.is_none_or(|aim| aim < bar.most), "{}", bar.name);
        }
    }
}
