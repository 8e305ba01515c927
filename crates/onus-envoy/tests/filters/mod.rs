//! Single streams through single filters.

mod calls;
mod held;
mod memory;
mod requests;
mod workers;

use std::sync::Arc;

use http::{HeaderMap, HeaderName};
use onus_envoy::{FilterConfig, Hub, InboundFilter, OutboundFilter, Service, Timestamp};

use crate::cast::Played;

/// A service with this configuration.
fn service(config: &str) -> Arc<Service> {
    let config = FilterConfig::parse(config.as_bytes()).unwrap();
    Hub::new().service(config, 1, Timestamp::ZERO).unwrap()
}

/// The service `a`, which enforces.
fn enforcing() -> Arc<Service> {
    service(r#"{"service": "a", "mode": "enforce"}"#)
}

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&'static str, &str)| {
        (HeaderName::from_static(name), value.parse().unwrap())
    };
    lines.iter().map(line).collect()
}

fn line<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

/// A request under way in the application.
struct Serving {
    filter: InboundFilter,
    stream: Played,
}

impl Serving {
    fn of(service: &Arc<Service>, lines: &[(&'static str, &str)]) -> Self {
        let mut filter = InboundFilter::new(service.clone());
        let mut stream = Played::request(headers(lines));
        filter.on_request(&mut stream);
        Self { filter, stream }
    }

    /// What the application hands on.
    fn state(&self) -> &str {
        line(&self.stream.request, "tracestate")
    }

    /// The application answers; the answer as the caller gets it.
    fn answer(mut self, status: u16, lines: &[(&'static str, &str)]) -> HeaderMap {
        self.stream.status = status;
        self.stream.response = headers(lines);
        self.filter.on_response(&mut self.stream, true);
        self.filter.on_end(&self.stream);
        self.stream.response
    }

    fn claim(self) -> String {
        line(&self.answer(500, &[]), "onus-claim").to_owned()
    }
}

/// A call under way at the callee.
struct Calling {
    filter: OutboundFilter,
    stream: Played,
}

impl Calling {
    fn of(service: &Arc<Service>, state: &str) -> Self {
        Self::with(service, "GET", &[("tracestate", state)], true)
    }

    fn with(
        service: &Arc<Service>,
        method: &'static str,
        lines: &[(&'static str, &str)],
        ends: bool,
    ) -> Self {
        let mut filter = OutboundFilter::new(service.clone());
        let mut stream = Played::request(headers(lines));
        (stream.cluster, stream.method) = ("b".to_owned(), method);
        filter.on_request(&mut stream, ends);
        Self { filter, stream }
    }

    /// The answer is there, and is handed on to its end; as the application gets it.
    fn answered(mut self, status: u16, lines: &[(&'static str, &str)]) -> HeaderMap {
        self.stream.status = status;
        self.stream.response = headers(lines);
        self.filter.on_response(&mut self.stream, true);
        self.filter.on_end(&self.stream);
        self.stream.response
    }
}
