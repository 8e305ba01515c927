//! `onus model --config`: what the failures in a user's own mesh come to.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::anyhow;
use comfy_table::Cell;
use onus_sim::model::{Load, Mesh, OfService};
use serde::Serialize;

use super::{print, table};
use crate::cli::{ModelOptions, Output};
use crate::exit::Refused;

pub(crate) fn run(path: &Path, options: &ModelOptions) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let text = fs::read_to_string(path).map_err(|error| Refused(format!("{name}: {error}")))?;
    let mesh = Mesh::from_yaml(&name, &text)?;
    if let Some(id) = &options.rerun {
        let unknown = || {
            Refused(format!(
                "no short trace has the id `{id}`; ids are `fails:SERVICE`, \
                 `fails-at-will:SERVICE` and `lost:SERVICE`"
            ))
        };
        return print(&table::replay(&mesh.rerun(id).ok_or_else(unknown)?));
    }
    let found = mesh.check();
    print(&match options.output {
        Output::Table => render(path, &mesh, &found),
        Output::Json => json(&mesh, &found)?,
    })?;
    let multiplied: Vec<_> =
        found.iter().filter(|of| of.multiplies).map(|of| of.service.as_str()).collect();
    if multiplied.is_empty() {
        return Ok(());
    }
    Err(anyhow!(
        "keep the retries of several hops apart, for failures of {}",
        multiplied.join(", ")
    ))
}

/// A row per service, and the shortest trace in which retries of several hops multiply.
fn render(path: &Path, mesh: &Mesh, found: &[OfService]) -> String {
    let mut text = format!(
        "{}: {} services. The most requests that a service gets for one request of a client, and \
         without ownership:\n\n{}\n",
        path.display(),
        mesh.services(),
        rows(found)
    );
    let multiplied = found.iter().filter(|of| of.multiplies);
    let shortest = multiplied.min_by_key(|of| of.fails.map_or(u32::MAX, |load| load.requests));
    if let Some(of) = shortest {
        let id = format!("fails:{}", of.service);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nThe shortest trace in which several hops multiply is {id}");
        if let Some(trace) = mesh.rerun(&id) {
            let _ = write!(text, "\n{}", table::replay(&trace));
        }
    }
    text
}

fn rows(found: &[OfService]) -> comfy_table::Table {
    let header = [
        "service",
        "fails always",
        "fails at will",
        "answers get lost",
        "hops multiply",
        "retried at",
    ];
    let mut table = table::table_with(header);
    for of in found {
        let [fails, at_will, lost] = [of.fails, of.fails_at_will, of.lost].map(load);
        let retried = match of.retried.as_deref() {
            None => "too often to tell".to_owned(),
            Some([]) => "nowhere".to_owned(),
            Some(edges) => edges.join(", "),
        };
        let multiplies = if of.multiplies { "yes" } else { "no" };
        let [service, multiplies, retried] =
            [of.service.as_str(), multiplies, &retried].map(Cell::new);
        table.add_row([service, fails, at_will, lost, multiplies, retried]);
    }
    table
}

fn load(load: Option<Load>) -> Cell {
    let count = |count: u32| table::grouped(count.into());
    let counts = |Load { requests, without }| format!("{} ({})", count(requests), count(without));
    Cell::new(load.map_or_else(|| "too many ways".to_owned(), counts))
}

#[derive(Serialize)]
struct Document<'a> {
    schema_version: u32,
    services: usize,
    culprits: Vec<Culprit<'a>>,
}

#[derive(Serialize)]
struct Culprit<'a> {
    service: &'a str,
    fails: Option<Requests>,
    fails_at_will: Option<Requests>,
    answers_lost: Option<Requests>,
    multiplies: bool,
    retried_at: Option<&'a [String]>,
}

#[derive(Serialize)]
struct Requests {
    requests: u32,
    without_ownership: u32,
}

fn json(mesh: &Mesh, found: &[OfService]) -> serde_json::Result<String> {
    let counts = |Load { requests, without }| Requests { requests, without_ownership: without };
    let requests = |load: Option<Load>| load.map(counts);
    let culprits = found.iter().map(|of| Culprit {
        service: &of.service,
        fails: requests(of.fails),
        fails_at_will: requests(of.fails_at_will),
        answers_lost: requests(of.lost),
        multiplies: of.multiplies,
        retried_at: of.retried.as_deref(),
    });
    let document =
        Document { schema_version: 1, services: mesh.services(), culprits: culprits.collect() };
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
