//! `onus traces`: reads dumps with `onus-traces` and prints what they show.

mod csv;
mod json;
mod table;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use onus_graph::{Drawing, Failures, ListedEdge, Survival};
use onus_traces::{Columns, Format, Import, Limits, Reading, Report, Service};

use crate::cli::{ColumnOptions, DumpFormat, TracesOptions, TracesOutput};
use crate::exit::{Exit, Refused};
use crate::graphs::Graphs;
use crate::radius::{Known, KnownEdges, Radius};

pub(crate) fn run(options: &TracesOptions) -> anyhow::Result<Exit> {
    let graphs = Graphs::read(&options.graph)?;
    let report = report(options)?;
    let known = known(&report, &graphs);
    let radius = match options.output {
        TracesOutput::Csv => None,
        TracesOutput::Table
        | TracesOutput::Wide
        | TracesOutput::Json
        | TracesOutput::Dot
        | TracesOutput::Mermaid
        | TracesOutput::Svg => Radius::of(&known, &options.storm)?,
    };
    let drawing = |most| radius.as_ref().map(|radius| radius.drawing(&known, most));
    let text = match options.output {
        TracesOutput::Table => table::render(&report, radius.as_ref(), false),
        TracesOutput::Wide => table::render(&report, radius.as_ref(), true),
        TracesOutput::Json => json::render(&report, radius.as_ref(), &graphs)?,
        TracesOutput::Csv => csv::render(&report),
        TracesOutput::Dot => picture(drawing(usize::MAX), Drawing::dot),
        TracesOutput::Mermaid => picture(drawing(MERMAID_MOST), Drawing::mermaid),
        TracesOutput::Svg => picture(drawing(SVG_MOST), Drawing::svg),
    };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")?;
    Ok(tell(&report, &graphs))
}

/// Tells what was difficult, and how the command ends therefore.
fn tell(report: &Report, graphs: &Graphs) -> Exit {
    for warning in &report.warnings {
        anstream::eprintln!("warning: {warning}");
    }
    for complaint in graphs.complaints() {
        anstream::eprintln!("warning: {complaint}");
    }
    let edges = graphs.skipped();
    if !report.skipped.any() && edges == 0 {
        return Exit::Done;
    }
    let mut all = Vec::new();
    if report.skipped.any() {
        all.push(report.skipped.to_string());
    }
    if edges > 0 {
        all.push(format!("{edges} edges of graphs"));
    }
    anstream::eprintln!("warning: skipped in all: {}", all.join(", "));
    Exit::Incomplete
}

/// What dumps and graphs show of each edge.
fn known(report: &Report, graphs: &Graphs) -> KnownEdges {
    let listed = graphs.edges.iter().map(|edge| {
        let ListedEdge { caller, callee, calls: _ } = edge;
        ((caller.clone(), callee.clone()), Known::NOTHING)
    });
    let seen = report.edges.iter().map(|edge| {
        let survival = Survival {
            calls: Failures { all: edge.failures, both: edge.both },
            requests: Failures { all: edge.requests_with_failure, both: edge.requests_both },
            proven: edge.class(),
        };
        let known = Known { attempts: edge.attempts, survival };
        ((edge.caller.clone(), edge.callee.clone()), known)
    });
    // What was seen counts more than what is listed.
    listed.chain(seen).collect()
}

/// A picture, or nothing of a graph without edges.
fn picture(drawing: Option<Drawing>, form: fn(&Drawing) -> String) -> String {
    let Some(drawing) = drawing else { return String::new() };
    let (services, edges) = drawing.left_out();
    if services + edges > 0 {
        anstream::eprintln!("note: {edges} edges and {services} services had no room");
    }
    form(&drawing)
}

fn report(options: &TracesOptions) -> anyhow::Result<Report> {
    standard_input_once(options.files.iter().chain(&options.errors))?;
    let mut import = Import::new(Limits::default());
    match columns(&options.columns) {
        Some(columns) => import.columns(columns),
        None if options.format == DumpFormat::Table => {
            let needed = "--format table needs the names of its columns: --trace-column, \
                          --span-column, --parent-column, and --service-column or --pod-column";
            return Err(Refused(needed.to_owned()).into());
        }
        None => {}
    }
    for file in &options.files {
        let (name, source) = open(file)?;
        import.read(&name, source, format(options.format));
    }
    for file in &options.errors {
        let (name, source) = open(file)?;
        import.read_failed(&name, source);
    }
    Ok(import.report(Reading { client_errors: options.client_errors }))
}

/// Refuses to read standard input twice: the second time there is nothing.
pub(crate) fn standard_input_once<'p>(
    paths: impl Iterator<Item = &'p PathBuf>,
) -> Result<(), Refused> {
    match paths.filter(|path| path.as_os_str() == "-").count() {
        0 | 1 => Ok(()),
        _ => Err(Refused("standard input can be read once only".to_owned())),
    }
}

/// The columns, if any are given; the parser sees to it that all that are needed are.
fn columns(options: &ColumnOptions) -> Option<Columns> {
    let service = options.service_column.clone().map(Service::Name);
    Some(Columns {
        trace: options.trace_column.clone()?,
        span: options.span_column.clone()?,
        parent: options.parent_column.clone()?,
        service: service.or_else(|| options.pod_column.clone().map(Service::Pod))?,
        kind: options.kind_column.clone(),
        error: options.error_column.clone(),
        peer: options.peer_column.clone(),
        start: options.start_column.clone(),
    })
}

/// A file that is not there, or is a folder, is a mistake of whoever typed it, not of the dump.
pub(crate) fn open(path: &Path) -> anyhow::Result<(String, Box<dyn Read>)> {
    if path == Path::new("-") {
        return Ok(("standard input".to_owned(), Box::new(io::stdin().lock())));
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("open {name}"))?;
    let is_folder = file.metadata().is_ok_and(|it| it.is_dir());
    ensure!(!is_folder, "open {name}: it is a folder; name its files");
    Ok((name, Box::new(file)))
}

fn format(format: DumpFormat) -> Format {
    match format {
        DumpFormat::Detect => Format::Detect,
        DumpFormat::Jaeger => Format::Jaeger,
        DumpFormat::Zipkin => Format::Zipkin,
        DumpFormat::OtlpJson => Format::OtlpJson,
        DumpFormat::OtlpProtobuf => Format::OtlpProtobuf,
        DumpFormat::Table => Format::Table,
    }
}

/// Viewers of Markdown draw no more than 500 edges, and no more than 50 000 characters.
const MERMAID_MOST: usize = 250;

/// More is no picture.
const SVG_MOST: usize = 400;
