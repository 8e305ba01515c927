//! The agent's counters as Envoy's.

use std::cell::RefCell;
use std::collections::HashMap;

use onus_envoy::{Counters, FAMILIES};

use crate::abi;
use crate::counter_name::counter_name;

/// The counters of the plugin. A plugin's counters have no labels: they are in the name.
pub(crate) struct PluginCounters;

thread_local! {
    /// The numbers of counters by name; as many as the agent has series.
    static IDS: RefCell<HashMap<String, u32>> = RefCell::default();
}

impl Counters for PluginCounters {
    fn add(&mut self, family: usize, values: &[&str], count: u64) {
        let family = &FAMILIES[family];
        let name = counter_name(family.name, family.labels, values);
        let id = IDS.with_borrow_mut(|ids| match ids.get(&name) {
            Some(id) => Some(*id),
            None => {
                let id = abi::counter(&name)?;
                ids.insert(name.clone(), id);
                Some(id)
            }
        });
        if let Some(id) = id {
            abi::increment(id, count);
        }
    }
}
