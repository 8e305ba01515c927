//! The plugin as Envoy configures it, and its filter of one stream.

use std::rc::Rc;
use std::sync::{Arc, Once};

use onus_envoy::{
    ConfigError, Direction, FilterConfig, Hub, InboundFilter, OutboundFilter, Service,
};

use crate::abi;
use crate::counters::PluginCounters;
use crate::routes::Routes;
use crate::shared_data;
use crate::stream::{PluginStream, listener_direction, now, property_text};

/// The plugin on one listener.
pub(crate) struct Plugin {
    /// `None` where the listener is to say it, which only a stream can ask.
    direction: Option<Direction>,
    service: Arc<Service>,
    routes: Routes,
}

/// How often Envoy calls the tick of a plugin, in milliseconds: as often as its own watchdog wakes a
/// worker up.
const TICK: u32 = 100;

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
        abi::tick_every(TICK);
        Ok(Self { direction, service, routes: Routes::new(fastrand::u64(..)) })
    }

    /// A moment has passed: counters reach Envoy, whether there are requests or not.
    pub(crate) fn on_tick(&self) {
        self.routes.forget();
        self.service.export(&mut PluginCounters, now());
    }
}

/// What Istio tells its proxies of the workload.
fn of_node() -> Option<String> {
    let metadata = |path| property_text(path).filter(|text| !text.is_empty());
    let namespace = metadata("node\0metadata\0NAMESPACE")?;
    Some(format!("{namespace}/{}", metadata("node\0metadata\0WORKLOAD_NAME")?))
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

/// The plugin on one stream.
pub(crate) struct StreamContext {
    plugin: Rc<Plugin>,
    /// `None` until the head of the request is there, and where nobody says on which side of the
    /// application the listener is.
    filter: Option<Filter>,
}

enum Filter {
    Inbound(InboundFilter),
    Outbound(OutboundFilter),
}

impl Filter {
    fn of(plugin: &Plugin) -> Option<Self> {
        // Only a stream with a head can ask.
        let of_listener = || listener_direction().and_then(Direction::of_listener);
        let service = plugin.service.clone();
        Some(match plugin.direction.or_else(of_listener)? {
            Direction::Inbound => Self::Inbound(InboundFilter::new(service)),
            Direction::Outbound => Self::Outbound(OutboundFilter::new(service)),
        })
    }
}

impl StreamContext {
    /// The plugin on a stream that begins.
    pub(crate) fn new(plugin: Rc<Plugin>) -> Self {
        Self { plugin, filter: None }
    }

    /// The request's head is there; `ends` if there is nothing more of it.
    pub(crate) fn on_request(&mut self, ends: bool) {
        self.filter = Filter::of(&self.plugin);
        let mut stream = PluginStream::on(&self.plugin.routes);
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_request(&mut stream),
            Some(Filter::Outbound(filter)) => filter.on_request(&mut stream, ends),
            None => tell_unknown_direction(),
        }
    }

    /// The answer's head is there; `ends` if there is nothing more of it.
    pub(crate) fn on_response(&mut self, ends: bool) {
        let mut stream = PluginStream::on(&self.plugin.routes);
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_response(&mut stream, ends),
            Some(Filter::Outbound(filter)) => filter.on_response(&mut stream, ends),
            None => {}
        }
    }

    /// The answer's trailers are there.
    pub(crate) fn on_trailers(&mut self) {
        let mut stream = PluginStream::on(&self.plugin.routes);
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_trailers(&mut stream),
            Some(Filter::Outbound(filter)) => filter.on_trailers(&mut stream),
            None => {}
        }
    }

    /// The stream is over, however it ended.
    pub(crate) fn on_end(&mut self) {
        let stream = PluginStream::on(&self.plugin.routes);
        match &mut self.filter {
            Some(Filter::Inbound(filter)) => filter.on_end(&stream),
            Some(Filter::Outbound(filter)) => filter.on_end(&stream),
            None => {}
        }
    }
}
