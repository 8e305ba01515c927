//! The plugin as Envoy configures it, and its filter of one stream.

use std::sync::{Arc, Once};

use onus_envoy::{
    Clock, ConfigError, Direction, FilterConfig, Hub, InboundFilter, OutboundFilter, Service,
};
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType};

use crate::counters::PluginCounters;
use crate::stream::{PluginStream, now, property_text};

/// The plugin on one listener.
#[derive(Default)]
pub(crate) struct Plugin(Option<Configured>);

struct Configured {
    /// `None` where the listener is to say it, which only a stream can ask.
    direction: Option<Direction>,
    service: Arc<Service>,
}

/// What the filters of this worker share.
static HUB: Hub = Hub::new();

impl Configured {
    fn new(text: &[u8]) -> Result<Self, ConfigError> {
        let mut config = FilterConfig::parse(text)?;
        let direction = config.take_direction()?;
        config.service = config.service.or_else(of_node);
        let service = HUB.service(config, fastrand::u64(..), now())?;
        Ok(Self { direction, service })
    }
}

/// What Istio tells its proxies of the workload.
fn of_node() -> Option<String> {
    let metadata =
        |name| property_text(&["node", "metadata", name]).filter(|text| !text.is_empty());
    Some(format!("{}/{}", metadata("NAMESPACE")?, metadata("WORKLOAD_NAME")?))
}

impl Context for Plugin {}

impl RootContext for Plugin {
    fn on_configure(&mut self, _: usize) -> bool {
        let text = self.get_plugin_configuration().unwrap_or_default();
        match Configured::new(&text) {
            Ok(configured) => {
                self.0 = Some(configured);
                true
            }
            Err(error) => {
                tracing::error!("onus: {error}");
                false
            }
        }
    }

    fn create_http_context(&self, _: u32) -> Option<Box<dyn HttpContext>> {
        let Configured { direction, service } = self.0.as_ref()?;
        let filter = direction.map(|direction| Filter::new(direction, service.clone()));
        Some(Box::new(StreamContext { service: service.clone(), filter }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

/// The plugin on one stream.
struct StreamContext {
    service: Arc<Service>,
    /// `None` until the listener has said on which side it is, and where it does not.
    filter: Option<Filter>,
}

enum Filter {
    Inbound(InboundFilter),
    Outbound(OutboundFilter),
}

impl Filter {
    fn new(direction: Direction, service: Arc<Service>) -> Self {
        match direction {
            Direction::Inbound => Self::Inbound(InboundFilter::new(service)),
            Direction::Outbound => Self::Outbound(OutboundFilter::new(service)),
        }
    }
}

/// A listener whose side nobody tells: said once in each worker.
fn tell_unknown_direction() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::error!(
            "onus: the plugin does nothing: allowed is a listener with a traffic_direction, or \
             `filter` in the plugin's configuration with inbound or outbound"
        );
    });
}

impl Context for StreamContext {}

impl HttpContext for StreamContext {
    fn on_http_request_headers(&mut self, _: usize, ends: bool) -> Action {
        let stream = &mut PluginStream::default();
        self.service.export(&mut PluginCounters, stream.now());
        if self.filter.is_none() {
            let direction = stream.listener_direction().and_then(Direction::of_listener);
            self.filter = direction.map(|direction| Filter::new(direction, self.service.clone()));
        }
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_request(stream),
            Some(Filter::Outbound(filter)) => filter.on_request(stream, ends),
            None => tell_unknown_direction(),
        }
        Action::Continue
    }

    fn on_http_response_headers(&mut self, _: usize, ends: bool) -> Action {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_response(&mut PluginStream::default(), ends),
            Some(Filter::Outbound(filter)) => {
                filter.on_response(&mut PluginStream::default(), ends)
            }
            None => {}
        }
        Action::Continue
    }

    fn on_http_response_body(&mut self, _: usize, ends: bool) -> Action {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_body(ends),
            Some(Filter::Outbound(filter)) => filter.on_body(ends),
            None => {}
        }
        Action::Continue
    }

    fn on_http_response_trailers(&mut self, _: usize) -> Action {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_trailers(&mut PluginStream::default()),
            Some(Filter::Outbound(filter)) => filter.on_trailers(&mut PluginStream::default()),
            None => {}
        }
        Action::Continue
    }

    fn on_log(&mut self) {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_end(&PluginStream::default()),
            Some(Filter::Outbound(filter)) => filter.on_end(&PluginStream::default()),
            None => {}
        }
    }
}
