//! The proxy's own metrics, beside those of the layers.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use onus::prometheus_client::collector::Collector;
use onus::prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet,
};
use onus::prometheus_client::metrics::MetricType;

use crate::client_error::ClientError;
use crate::listener::ListenerCounts;
use crate::pool::PoolView;
use crate::proxy::State;

/// The proxy's own families.
pub(crate) struct Families(pub(crate) Arc<State>);

impl fmt::Debug for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Families").finish_non_exhaustive()
    }
}

impl Collector for Families {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut page = Page(encoder);
        self.listeners(&mut page)?;
        self.pools(&mut page)?;
        self.whole(&mut page)
    }
}

impl Families {
    fn listeners(&self, page: &mut Page<'_>) -> fmt::Result {
        let both = [("inbound", &self.0.inbound), ("outbound", &self.0.outbound)];
        let each = |family: &mut Family<'_>, value: fn(&ListenerCounts) -> u64| {
            both.iter()
                .try_for_each(|(name, counts)| family.add(&[("listener", *name)], value(counts)))
        };
        let help = "Connections of clients.";
        each(&mut page.gauges("onus_proxy_connections", help)?, |counts| {
            counts.connections.count() as u64
        })?;
        let help = "Requests that are not answered to their end.";
        each(&mut page.gauges("onus_proxy_requests", help)?, |counts| {
            counts.requests.count() as u64
        })?;
        let help = "Connections that found no room.";
        each(&mut page.counters("onus_proxy_connections_refused", help)?, |counts| {
            counts.refused.load(Ordering::Relaxed)
        })?;
        let help = "Connections whose TLS handshake failed.";
        each(&mut page.counters("onus_proxy_handshakes_failed", help)?, |counts| {
            counts.handshakes_failed.load(Ordering::Relaxed)
        })?;
        let help = "Connections that were closed because a head did not come in time.";
        each(&mut page.counters("onus_proxy_slow_heads", help)?, |counts| {
            counts.slow.load(Ordering::Relaxed)
        })?;
        let help = "Requests and connections that were refused for what the client sent.";
        let mut family = page.counters("onus_proxy_client_errors", help)?;
        both.iter().try_for_each(|(name, counts)| {
            ClientError::ALL.into_iter().try_for_each(|kind| {
                let labels = [("listener", *name), ("kind", kind.as_str())];
                family.add(&labels, counts.client_errors.get(kind))
            })
        })?;
        let help = "Interim answers for clients of HTTP/1.1, by what became of them.";
        let mut family = page.counters("onus_proxy_interim_answers", help)?;
        both.iter().try_for_each(|(name, counts)| {
            let interims = &counts.interims;
            let results = [("passed", &interims.passed), ("dropped", &interims.dropped)];
            results.iter().try_for_each(|(result, count)| {
                let labels = [("listener", *name), ("result", *result)];
                family.add(&labels, count.load(Ordering::Relaxed))
            })
        })
    }

    fn pools(&self, page: &mut Page<'_>) -> fmt::Result {
        let mut views = vec![self.0.app.load().view()];
        views.extend(self.0.callees.load().views());
        let mut family = page.gauges(
            "onus_proxy_instances",
            "Instances of a callee, by whether they could be reached, and those beyond the most.",
        )?;
        for view in &views {
            let reached = view.instances - view.failing;
            let states =
                [("reached", reached), ("failing", view.failing), ("left-out", view.left_out)];
            for (state, count) in states {
                family.add(&[("callee", &*view.callee), ("state", state)], count as u64)?;
            }
        }
        let mut family = page.gauges("onus_proxy_callee_connections", "Connections to callees.")?;
        for view in &views {
            let busy = view.connections.saturating_sub(view.idle);
            for (protocol, state, count) in [
                ("http1", "busy", busy),
                ("http1", "idle", view.idle),
                ("http2", "open", view.http2_connections),
            ] {
                let labels = [("callee", &*view.callee), ("protocol", protocol), ("state", state)];
                family.add(&labels, count as u64)?;
            }
        }
        let gauges: [Reading; 2] = [
            ("onus_proxy_callee_streams", "Requests on HTTP/2 connections.", |view| {
                view.streams as u64
            }),
            ("onus_proxy_callee_waiting", "Requests that wait for a connection.", |view| {
                view.waiting as u64
            }),
        ];
        for (name, help, value) in gauges {
            let mut family = page.gauges(name, help)?;
            views
                .iter()
                .try_for_each(|view| family.add(&[("callee", &*view.callee)], value(view)))?;
        }
        let counters: [Reading; 7] = [
            (
                "onus_proxy_lookups_failed",
                "Questions to the resolver that brought no address.",
                |view| view.lookups_failed,
            ),
            (
                "onus_proxy_resends",
                "Requests that were sent over a second connection because they were provably not worked on.",
                |view| view.resends,
            ),
            ("onus_proxy_unreachable", "Attempts that met nobody.", |view| view.unreachable),
            (
                "onus_proxy_refused",
                "Attempts that found no connection, nor room to wait for one.",
                |view| view.refused,
            ),
            ("onus_proxy_broken", "Attempts whose connection broke before an answer.", |view| {
                view.broken
            }),
            (
                "onus_proxy_given_up",
                "Attempts that nobody waited for any more, because of their time or their client.",
                |view| view.given_up,
            ),
            (
                "onus_proxy_interim_answers_untold",
                "Interim answers whose client cannot be told: one of HTTP/1.0, or of HTTP/2.",
                |view| view.interims_untold,
            ),
        ];
        for (name, help, value) in counters {
            let mut family = page.counters(name, help)?;
            views
                .iter()
                .try_for_each(|view| family.add(&[("callee", &*view.callee)], value(view)))?;
        }
        Ok(())
    }

    fn whole(&self, page: &mut Page<'_>) -> fmt::Result {
        let state = &self.0;
        let read = |flag: &std::sync::atomic::AtomicBool| u64::from(flag.load(Ordering::Relaxed));
        let replay = state.onus.replay_limits().in_use() as u64;
        for (name, help, value) in [
            (
                "onus_proxy_tunnels",
                "Connections that stopped being HTTP.",
                state.tunnels.count() as u64,
            ),
            (
                "onus_proxy_tail_readers",
                "Readers of the access log while it happens.",
                state.log.readers() as u64,
            ),
            ("onus_proxy_ready", "1 until the proxy is told to end.", u64::from(state.is_ready())),
            (
                "onus_proxy_config_refused",
                "1 while the configuration in force is not the one in the file.",
                read(&state.is_refused),
            ),
            (
                "onus_proxy_replay_bytes",
                "Bytes of request bodies that may have to be sent again.",
                replay,
            ),
        ] {
            page.gauges(name, help)?.add(&NO_LABELS, value)?;
        }
        let help = "Lines of the access log that readers were too slow for.";
        page.counters("onus_proxy_tail_missed", help)?.add(&NO_LABELS, state.log.missed())?;
        let mut family = page.counters(
            "onus_proxy_reloads",
            "Configurations that were read, by what became of them.",
        )?;
        let counts = [("taken", &state.reloads), ("refused", &state.reloads_refused)];
        counts.iter().try_for_each(|(result, count)| {
            family.add(&[("result", *result)], count.load(Ordering::Relaxed))
        })
    }
}

/// A family, what it is for, and where its value is.
type Reading = (&'static str, &'static str, fn(&PoolView) -> u64);

const NO_LABELS: [(&str, &str); 0] = [];

struct Page<'a>(DescriptorEncoder<'a>);

/// A family that is being written.
enum Family<'a> {
    Counters(MetricEncoder<'a>),
    Gauges(MetricEncoder<'a>),
}

impl Page<'_> {
    /// `_total` is added to the name.
    fn counters(&mut self, name: &'static str, help: &str) -> Result<Family<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Counter).map(Family::Counters)
    }

    fn gauges(&mut self, name: &'static str, help: &str) -> Result<Family<'_>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, MetricType::Gauge).map(Family::Gauges)
    }
}

impl Family<'_> {
    fn add(&mut self, labels: &impl EncodeLabelSet, value: u64) -> fmt::Result {
        match self {
            Self::Counters(encoder) => {
                encoder.encode_family(labels)?.encode_counter::<NoLabelSet, u64, u64>(&value, None)
            }
            Self::Gauges(encoder) => encoder.encode_family(labels)?.encode_gauge(&(value as f64)),
        }
    }
}
