//! The filters of this module by their names, and the services that they share.

use std::sync::Arc;

use onus_envoy::{
    AttemptFilter, ConfigError, FilterConfig, Hub, InboundFilter, OutboundFilter, Service,
};

use crate::clock;
use crate::envoy_counters::Ids;
use crate::service_name;
use crate::switch_file::WatchedFile;

/// A filter's configuration.
pub(crate) struct Config {
    which: Which,
    service: Arc<Service>,
    switch_file: Option<Arc<WatchedFile>>,
    pub(crate) ids: Ids,
}

/// The filters by their `filter_name`.
#[derive(Clone, Copy)]
enum Which {
    Inbound,
    Outbound,
    Attempt,
}

impl Which {
    fn parse(name: &[u8]) -> Result<Self, ConfigError> {
        match name {
            b"inbound" => Ok(Self::Inbound),
            b"outbound" => Ok(Self::Outbound),
            b"attempt" => Ok(Self::Attempt),
            _ => Err(ConfigError::Filter {
                field: "filter_name",
                value: String::from_utf8_lossy(name).into_owned(),
                allowed: "inbound, outbound or attempt",
            }),
        }
    }
}

/// A filter of one stream.
pub(crate) enum Filter {
    /// What is left where no filter could be made.
    Nothing,
    Inbound(InboundFilter),
    Outbound(OutboundFilter),
    Attempt(AttemptFilter),
}

/// What all filters of the process share.
static HUB: Hub = Hub::new();

impl Config {
    /// The configuration of the filter with this `filter_name`.
    pub(crate) fn new(name: &[u8], text: &[u8], ids: Ids) -> Result<Self, ConfigError> {
        let which = Which::parse(name)?;
        let mut config = FilterConfig::parse(text)?;
        config.for_module()?;
        config.service = config.service.or_else(service_name::from_environment);
        let service = HUB.service(config, fastrand::u64(..), clock::now())?;
        let switch_file = WatchedFile::of(&service);
        Ok(Self { which, service, switch_file, ids })
    }

    /// The service that the filter belongs to.
    pub(crate) fn service(&self) -> &Service {
        &self.service
    }

    /// A filter for a stream that begins.
    pub(crate) fn filter(&self) -> Filter {
        if let Some(switch_file) = &self.switch_file {
            switch_file.follow();
        }
        match self.which {
            Which::Inbound => Filter::Inbound(InboundFilter::new(self.service.clone())),
            Which::Outbound => Filter::Outbound(OutboundFilter::new(self.service.clone())),
            Which::Attempt => Filter::Attempt(AttemptFilter::new(self.service.clone())),
        }
    }
}
