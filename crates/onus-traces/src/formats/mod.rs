//! The formats of dumps, and which one a file is in.

mod document;
mod jaeger;
mod otlp_json;
mod otlp_protobuf;
mod pairs;
mod table;
mod tags;
mod zipkin;

pub use table::{Columns, Service};

use std::io::Read;

use crate::collect::Collector;
use crate::json::Json;
use crate::source;
use crate::trouble::Trouble;
use crate::window::Window;

/// The format of a dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Whatever each file looks like.
    #[default]
    Detect,
    /// Jaeger's JSON.
    Jaeger,
    /// Zipkin's JSON, version 2.
    Zipkin,
    /// OTLP as JSON.
    OtlpJson,
    /// OTLP as protobuf.
    OtlpProtobuf,
    /// A table with a header line.
    Table,
}

impl Format {
    /// What messages call it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Detect => "a dump in a format that is known",
            Self::Jaeger => "a dump in Jaeger's JSON",
            Self::Zipkin => "a dump in Zipkin's JSON",
            Self::OtlpJson => "a dump in OTLP's JSON",
            Self::OtlpProtobuf => "a dump in OTLP's protobuf",
            Self::Table => "a table",
        }
    }

    fn allows(self, format: Self) -> bool {
        self == Self::Detect || self == format
    }
}

/// Reads a file, whatever it turns out to be.
pub(crate) fn read<'r>(
    source: impl Read + 'r,
    wanted: Format,
    columns: Option<&Columns>,
    into: &mut Collector,
) {
    let mut window = match source::plain(source) {
        Ok(plain) => Window::new(plain),
        Err(error) => return into.unreadable(&error),
    };
    if let Err(error) = window.reach(HEAD) {
        into.unreadable(&error);
    }
    if window.seen().starts_with(b"\xef\xbb\xbf") {
        window.advance(3);
    }
    let found = match wanted {
        Format::Detect => detect(window.seen(), columns.is_some()),
        Format::Jaeger
        | Format::Zipkin
        | Format::OtlpJson
        | Format::OtlpProtobuf
        | Format::Table => wanted,
    };
    match (found, columns) {
        (Format::Table, Some(columns)) => table::rows(&mut window, columns, into),
        (Format::Detect | Format::Jaeger | Format::Zipkin | Format::OtlpJson, _) => {
            document::documents(&mut Json::new(window), found, into);
        }
        (Format::OtlpProtobuf, _) => otlp_protobuf::messages(window, into),
        (Format::Table, None) => {
            into.trouble(0, Trouble::NotADump { wanted: wanted.name() });
        }
    }
}

/// What a file is that begins with `head`. Which JSON it is, is told by its keys.
fn detect(head: &[u8], has_columns: bool) -> Format {
    // Lengths and field numbers of protobuf are bytes that no text has.
    let control = |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\n' | b'\r' | b'\t');
    let head = &head[..head.len().min(HEAD)];
    if head.iter().any(control) {
        return Format::OtlpProtobuf;
    }
    match head.trim_ascii_start().first() {
        Some(b'{' | b'[') => Format::Detect,
        Some(_) if has_columns => Format::Table,
        Some(_) | None => Format::Detect,
    }
}

/// Enough of a file to see what it is.
const HEAD: usize = 512;
