//! The agent's counters as Envoy's.

use onus_envoy::{Counters, FAMILIES};

use crate::abi::{Buffer, Callbacks, EnvoyConfig, EnvoyFilter};

/// The numbers that Envoy has given to the families, for the filters of one configuration.
pub(crate) struct Ids(Vec<Option<usize>>);

impl Ids {
    /// Defines every family.
    ///
    /// # Safety
    ///
    /// Envoy must have handed `config` to the hook that is running, which configures a filter.
    pub(crate) unsafe fn define(callbacks: &Callbacks, config: EnvoyConfig) -> Self {
        let define = |family: &onus_envoy::Family| {
            let define = callbacks.define_counter?;
            let labels: Vec<_> = family.labels.iter().map(|l| Buffer::of(l.as_bytes())).collect();
            let name = Buffer::of(family.name.as_bytes());
            let mut id = 0;
            // SAFETY: the configuration is that of the running hook; Envoy copies the names.
            let result =
                unsafe { define(config, name, labels.as_ptr(), labels.len(), &raw mut id) };
            (result == SUCCESS).then_some(id)
        };
        Self(FAMILIES.iter().map(define).collect())
    }
}

const SUCCESS: u32 = 0;

/// The counters during one hook.
pub(crate) struct EnvoyCounters<'a> {
    callbacks: &'static Callbacks,
    filter: EnvoyFilter,
    ids: &'a Ids,
}

impl<'a> EnvoyCounters<'a> {
    /// The counters of `filter`.
    ///
    /// # Safety
    ///
    /// Envoy must have handed `filter` to the hook that is running, and `ids` must be those of its
    /// configuration.
    pub(crate) const unsafe fn new(
        callbacks: &'static Callbacks,
        filter: EnvoyFilter,
        ids: &'a Ids,
    ) -> Self {
        Self { callbacks, filter, ids }
    }
}

impl Counters for EnvoyCounters<'_> {
    fn add(&mut self, family: usize, values: &[&str], count: u64) {
        let (Some(add), Some(id)) = (self.callbacks.add_to_counter, self.ids.0[family]) else {
            return;
        };
        let values: Vec<_> = values.iter().map(|value| Buffer::of(value.as_bytes())).collect();
        // SAFETY: filter and number are of one configuration; Envoy copies the values.
        unsafe { add(self.filter, id, values.as_ptr(), values.len(), count) };
    }
}
