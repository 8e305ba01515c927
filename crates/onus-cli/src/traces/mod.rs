//! `onus traces`: reads dumps with `onus-traces` and prints what they show.

mod csv;
mod json;
mod table;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::Context;
use onus_traces::{Columns, Format, Import, Limits, Reading, Report, Service};

use crate::cli::{ColumnOptions, DumpFormat, TracesOptions, TracesOutput};
use crate::exit::Exit;

pub(crate) fn run(options: &TracesOptions) -> anyhow::Result<Exit> {
    let report = report(options)?;
    let text = match options.output {
        TracesOutput::Table => table::render(&report, false),
        TracesOutput::Wide => table::render(&report, true),
        TracesOutput::Json => json::render(&report)?,
        TracesOutput::Csv => csv::render(&report),
    };
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("write the result")?;
    for warning in &report.warnings {
        anstream::eprintln!("warning: {warning}");
    }
    if report.skipped.any() {
        anstream::eprintln!("warning: skipped in all: {}", report.skipped);
        return Ok(Exit::Incomplete);
    }
    Ok(Exit::Done)
}

fn report(options: &TracesOptions) -> anyhow::Result<Report> {
    let mut import = Import::new(Limits::default());
    if let Some(columns) = columns(&options.columns) {
        import.columns(columns);
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

/// A file that is not there is a mistake of whoever typed it, not of the dump.
fn open(path: &Path) -> anyhow::Result<(String, Box<dyn Read>)> {
    if path == Path::new("-") {
        return Ok(("standard input".to_owned(), Box::new(io::stdin().lock())));
    }
    let name = path.display().to_string();
    let file = File::open(path).with_context(|| format!("open {name}"))?;
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
