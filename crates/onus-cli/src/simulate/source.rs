//! Where a scenario comes from: a file, or those that come with the command.

use std::fmt::Write;
use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use onus_sim::simulate::{Changes, SHIPPED, Scenario, shipped};

use crate::cli::SimulateOptions;

/// The shipped scenarios with the first sentence of what they show.
pub(crate) fn list() -> String {
    let mut text = String::from("Scenarios to choose from, or name a file:\n\n");
    let width = SHIPPED.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, yaml) in SHIPPED {
        let about = yaml.lines().skip_while(|line| !line.starts_with("about:")).nth(1);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:width$}  {}", about.unwrap_or_default().trim());
    }
    text
}

/// Reads a scenario, and what its topology names.
pub(crate) fn load(name: &str, options: &SimulateOptions) -> anyhow::Result<Scenario> {
    let changes = Changes { seeds: options.seeds, sweep: options.sweep.clone() };
    let path = Path::new(name);
    if let Some(text) = shipped(name).filter(|_| !path.exists()) {
        let none = |path: &str| Err(format!("{path} does not come with the command"));
        return Ok(Scenario::load(name, text, &changes, &none)?);
    }
    let text = fs::read_to_string(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            return anyhow::Error::new(Missing { name: name.to_owned() });
        }
        anyhow::Error::new(error).context(format!("read {name}"))
    })?;
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let read =
        |file: &str| fs::read_to_string(folder.join(file)).map_err(|error| error.to_string());
    Scenario::load(name, &text, &changes, &read).context("load the scenario")
}

/// There is no such scenario.
#[derive(Debug, thiserror::Error)]
#[error("there is no scenario `{name}`; allowed is a file, or {}", names())]
pub(crate) struct Missing {
    name: String,
}

fn names() -> String {
    SHIPPED.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}
