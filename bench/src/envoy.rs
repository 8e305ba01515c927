//! A request through the filters of Envoy, over a stream that costs next to nothing: what the
//! filters themselves do.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::SystemTime;

use onus_envoy::{
    AttemptFilter, Block, Clock, FilterConfig, Hub, InboundFilter, OutboundFilter, Service, Shared,
    Stream, Timestamp,
};

/// The filters of a service, and a stream that is played to them.
pub struct Filters {
    service: Arc<Service>,
    stream: Played,
}

impl Filters {
    /// The filters of a service that enforces, with limits on retries or without.
    ///
    /// # Panics
    ///
    /// Never: the configuration is sound.
    #[must_use]
    pub fn new(callees: &str) -> Self {
        let text = format!(r#"{{"service": "bench", "mode": "enforce", "callees": {callees}}}"#);
        let config = FilterConfig::parse(text.as_bytes()).expect("it is sound");
        let service = Hub::new().service(config, 1, Timestamp::ZERO).expect("it is sound");
        Self { service, stream: Played::default() }
    }

    /// A request to the application and its answer.
    pub fn inbound(&mut self) {
        let stream = &mut self.stream;
        stream.begin();
        let mut filter = InboundFilter::new(self.service.clone());
        filter.on_request(stream);
        filter.on_response(stream, false);
        filter.on_body(true);
        filter.on_end(stream);
    }

    /// A request, a call that it makes, and their answers.
    pub fn inbound_and_outbound(&mut self) {
        let stream = &mut self.stream;
        stream.begin();
        let mut inbound = InboundFilter::new(self.service.clone());
        inbound.on_request(stream);
        let mut outbound = OutboundFilter::new(self.service.clone());
        outbound.on_request(stream, true);
        let mut attempt = AttemptFilter::new(self.service.clone());
        let _ = attempt.on_request(stream, true);
        let _ = attempt.on_response(stream);
        outbound.on_response(stream, false);
        attempt.on_body();
        outbound.on_body(true);
        attempt.on_end(stream);
        outbound.on_end(stream);
        inbound.on_response(stream, false);
        inbound.on_body(true);
        inbound.on_end(stream);
    }
}

/// A stream with the lines that most have.
#[derive(Default)]
struct Played {
    request: Vec<(Cow<'static, str>, Cow<'static, [u8]>)>,
    calls: u64,
    left: Option<u64>,
}

static RESPONSE: &[(&str, &str)] = &[
    (":status", "200"),
    ("content-type", "application/json"),
    ("content-length", "12"),
    ("date", "Mon, 30 Nov 2026 11:51:31 GMT"),
    ("x-envoy-upstream-service-time", "1"),
];

static REQUEST: &[(&str, &str)] = &[
    (":authority", "backend"),
    (":path", "/small"),
    (":method", "GET"),
    (":scheme", "http"),
    ("user-agent", "onus-bench"),
    ("accept", "*/*"),
    ("x-forwarded-proto", "http"),
    ("x-request-id", "2f4d0bd0-5a4a-4c1c-8d5b-2a3f6e1c9d11"),
    ("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
];

impl Played {
    fn begin(&mut self) {
        self.request.clear();
        let line = |&(name, value): &(&'static str, &'static str)| {
            (Cow::Borrowed(name), Cow::Borrowed(value.as_bytes()))
        };
        self.request.extend(REQUEST.iter().map(line));
        self.calls += 1;
    }
}

impl Stream for Played {
    fn each_line(&self, block: Block, each: &mut dyn FnMut(&[u8], &[u8])) {
        match block {
            Block::Request => {
                self.request.iter().for_each(|(name, value)| each(name.as_bytes(), value));
            }
            Block::Response => {
                RESPONSE.iter().for_each(|(name, value)| each(name.as_bytes(), value.as_bytes()));
            }
            Block::Trailers => {}
        }
    }

    fn add(&mut self, block: Block, name: &str, value: &[u8]) {
        if block == Block::Request {
            self.request.push((name.to_owned().into(), value.to_vec().into()));
        }
    }

    fn set(&mut self, block: Block, name: &str, value: &[u8]) {
        self.remove(block, name);
        self.add(block, name, value);
    }

    fn remove(&mut self, block: Block, name: &str) {
        if block == Block::Request {
            self.request.retain(|(other, _)| other != name);
        }
    }

    fn cluster(&self) -> Cow<'_, str> {
        "backend".into()
    }

    fn route(&self) -> Cow<'_, str> {
        Cow::default()
    }

    fn attempts(&self) -> Option<u32> {
        Some(1)
    }

    fn is_reply(&self) -> Option<bool> {
        Some(true)
    }

    fn response_flags(&self) -> Option<u64> {
        Some(0)
    }

    fn leave(&mut self, number: u64) {
        self.left = Some(number);
    }

    fn left(&self) -> Option<u64> {
        self.left
    }

    fn refuse(&mut self, _: &str) -> bool {
        false
    }

    fn shared(&self) -> Option<&dyn Shared> {
        None
    }
}

impl Clock for Played {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.calls * 100_000)
    }

    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH
    }

    fn bits(&self) -> u64 {
        self.calls | 1
    }
}
