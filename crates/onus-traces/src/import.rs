//! The way in: files one after the other, then the report.

use std::io::Read;

use crate::analysis::{self, Reading};
use crate::collect::{Collector, Limits};
use crate::formats::{self, Columns, Format};
use crate::list;
use crate::report::Report;

/// An import of any number of files.
///
/// No file can make it fail: what cannot be read is skipped, told and counted.
///
/// ```
/// use onus_traces::{Format, Import, Limits, Reading};
///
/// let trace = r#"[
///     {"traceId": "5af7183fb1d4cf5f", "id": "6b221d5bc9e6496c", "kind": "SERVER",
///      "localEndpoint": {"serviceName": "shop"}},
///     {"traceId": "5af7183fb1d4cf5f", "id": "352bff9a74ca9ad2", "parentId": "6b221d5bc9e6496c",
///      "kind": "CLIENT", "localEndpoint": {"serviceName": "shop"},
///      "remoteEndpoint": {"serviceName": "stock"}, "tags": {"error": "timeout"}}
/// ]"#;
/// let mut import = Import::new(Limits::default());
/// import.read("zipkin.json", trace.as_bytes(), Format::Detect);
/// let report = import.report(Reading::default());
/// let edge = &report.edges[0];
/// assert_eq!((edge.caller.as_str(), edge.callee.as_str()), ("shop", "stock"));
/// assert_eq!((edge.calls, edge.failures, edge.both), (1, 1, 0));
/// ```
#[derive(Debug)]
pub struct Import {
    collector: Collector,
    columns: Option<Columns>,
}

impl Import {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { collector: Collector::new(limits), columns: None }
    }

    /// Files that are no JSON are tables with these columns.
    pub fn columns(&mut self, columns: Columns) {
        self.columns = Some(columns);
    }

    /// Reads a dump, which messages call `name`.
    pub fn read(&mut self, name: &str, source: impl Read, format: Format) {
        if self.collector.begin(name) {
            formats::read(source, format, self.columns.as_ref(), &mut self.collector);
        }
    }

    /// Reads a list of failed spans from elsewhere, as of log lines: on each line a trace id and a
    /// span id, or a span id. A request with such a span has failed.
    pub fn read_failed(&mut self, name: &str, source: impl Read) {
        if self.collector.begin(name) {
            list::read(source, &mut self.collector);
        }
    }

    /// Counts what was read.
    #[must_use]
    pub fn report(self, reading: Reading) -> Report {
        analysis::report(self.collector, reading)
    }
}
