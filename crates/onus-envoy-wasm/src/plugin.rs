//! The plugin as Envoy configures it, and its filter of one stream.

use std::sync::{Arc, Once};

use onus_envoy::{
    Clock, ConfigError, Direction, FilterConfig, Hub, InboundFilter, OutboundFilter, Service,
};

use crate::abi;
use crate::counters::PluginCounters;
use crate::shared_data;
use crate::stream::{PluginStream, now, property_text};

/// The plugin on one listener.
pub(crate) struct Plugin {
    /// `None` where the listener is to say it, which only a stream can ask.
    direction: Option<Direction>,
    service: Arc<Service>,
}

/// What the filters of this worker share.
static HUB: Hub = Hub::new();

impl Plugin {
    /// The plugin that Envoy configures just now.
    pub(crate) fn configured() -> Result<Self, ConfigError> {
        let mut config = FilterConfig::parse(&abi::plugin_configuration())?;
        let direction = config.for_plugin()?;
        config.service = config.service.or_else(of_node);
        let service = HUB.service(config, fastrand::u64(..), now())?;
        shared_data::open();
        Ok(Self { direction, service })
    }

    /// The plugin on a stream that begins.
    pub(crate) fn stream(&self) -> StreamContext {
        let service = self.service.clone();
        let filter = self.direction.map(|direction| Filter::new(direction, service.clone()));
        StreamContext { service, filter }
    }
}

/// What Istio tells its proxies of the workload.
fn of_node() -> Option<String> {
    let metadata = |path| property_text(path).filter(|text| !text.is_empty());
    let namespace = metadata("node\0metadata\0NAMESPACE")?;
    Some(format!("{namespace}/{}", metadata("node\0metadata\0WORKLOAD_NAME")?))
}

/// The plugin on one stream.
pub(crate) struct StreamContext {
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

impl StreamContext {
    /// The request's head is there; `ends` if there is nothing more of it.
    pub(crate) fn on_request(&mut self, stream: &mut PluginStream, ends: bool) {
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
    }

    /// The answer's head is there; `ends` if there is nothing more of it.
    pub(crate) fn on_response(&mut self, stream: &mut PluginStream, ends: bool) {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_response(stream, ends),
            Some(Filter::Outbound(filter)) => filter.on_response(stream, ends),
            None => {}
        }
    }

    /// The answer's trailers are there.
    pub(crate) fn on_trailers(&mut self, stream: &mut PluginStream) {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_trailers(stream),
            Some(Filter::Outbound(filter)) => filter.on_trailers(stream),
            None => {}
        }
    }

    /// The stream is over, however it ended.
    pub(crate) fn on_end(&mut self, stream: &PluginStream) {
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_end(stream),
            Some(Filter::Outbound(filter)) => filter.on_end(stream),
            None => {}
        }
    }
}
