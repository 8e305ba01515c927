//! The agent's counters as Envoy's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write as _;

use onus_envoy::{Counters, FAMILIES};

use crate::abi;

/// The counters of the plugin. A plugin's counters have no labels: they are in the name, in the
/// form from which Istio's proxies take them (`extraStatTags`).
pub(crate) struct PluginCounters;

thread_local! {
    /// The numbers of counters by name; as many as the agent has series.
    static IDS: RefCell<HashMap<String, u32>> = RefCell::default();
}

impl Counters for PluginCounters {
    fn add(&mut self, family: usize, values: &[&str], count: u64) {
        let mut name = String::new();
        for (label, value) in FAMILIES[family].labels.iter().zip(values) {
            // Writing to a string does not fail.
            let _ = write!(name, "{label}=.={value};.;");
        }
        // What is left when the labels have been taken out.
        name.push_str(FAMILIES[family].name);
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
