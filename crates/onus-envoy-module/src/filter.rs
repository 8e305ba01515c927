//! The filters of this module by their names, and the services that they share.

use std::sync::Arc;

use onus_envoy::{
    ConfigError, Direction, FilterConfig, Hub, InboundFilter, OutboundFilter, Service,
};

use crate::clock;
use crate::envoy_counters::Ids;
use crate::service_name;
use crate::switch_file::WatchedFile;

/// A filter's configuration.
pub(crate) struct Config {
    direction: Direction,
    service: Arc<Service>,
    switch_file: Option<WatchedFile>,
    pub(crate) ids: Ids,
}

/// A filter of one stream.
pub(crate) enum Filter {
    /// What is left where no filter could be made.
    Nothing,
    Inbound(InboundFilter),
    Outbound(OutboundFilter),
}

/// What all filters of the process share.
static HUB: Hub = Hub::new();

impl Config {
    /// The configuration of the filter with this `filter_name`.
    pub(crate) fn new(name: &[u8], text: &[u8], ids: Ids) -> Result<Self, ConfigError> {
        let direction = Direction::parse("filter_name", &String::from_utf8_lossy(name))?;
        let mut config = FilterConfig::parse(text)?;
        config.filter = None;
        config.service = config.service.or_else(service_name::from_environment);
        let service = HUB.service(config, fastrand::u64(..), clock::now())?;
        let switch_file = service.config().switch_file.as_deref().map(WatchedFile::new);
        Ok(Self { direction, service, switch_file, ids })
    }

    /// The service that the filter belongs to.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// A filter for a stream that begins.
    pub(crate) fn filter(&self) -> Filter {
        if let Some(switch_file) = &self.switch_file {
            switch_file.follow(self.service.agent());
        }
        match self.direction {
            Direction::Inbound => Filter::Inbound(InboundFilter::new(self.service.clone())),
            Direction::Outbound => Filter::Outbound(OutboundFilter::new(self.service.clone())),
        }
    }
}
