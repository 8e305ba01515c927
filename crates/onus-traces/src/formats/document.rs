//! Which JSON a document is: told by its keys, and read in the same walk.

use memchr::memchr;

use super::{Format, jaeger, otlp_json, zipkin};
use crate::collect::Collector;
use crate::json::{Broken, Json, Turn, Why};
use crate::trouble::Trouble;

/// Reads one document after the other, until the end of the input.
///
/// After one that is broken it goes on at the next line that begins a document: a file with one
/// document on each line loses that line and not the rest.
pub(crate) fn documents(json: &mut Json<'_>, wanted: Format, into: &mut Collector) {
    let mut is_dump = false;
    loop {
        let read = match json.peek_or_end() {
            Ok(None) => break,
            Ok(Some(_)) => document(json, wanted, into),
            Err(broken) => Err(broken),
        };
        match read {
            Ok(known) => is_dump |= known,
            Err(broken) => {
                is_dump = true;
                go_to_next_line_with_a_document(json);
                let bytes = json.window.at().saturating_sub(broken.at);
                into.broken(broken, bytes);
            }
        }
    }
    if !is_dump {
        into.trouble(0, Trouble::NotADump { wanted: wanted.name() });
    }
    into.long_texts(json);
}

fn go_to_next_line_with_a_document(json: &mut Json<'_>) {
    loop {
        let seen = json.window.seen();
        let end = memchr(b'\n', seen).map_or(seen.len(), |at| at + 1);
        json.window.advance(end);
        // What cannot be read at all was told already, or ends the file.
        if !matches!(json.window.reach(1), Ok(true)) {
            return;
        }
        let begins = |byte| matches!(byte, Some(b'{' | b'['));
        if end > 0 && begins(json.window.first()) {
            return;
        }
    }
}

/// Reads a document; tells whether it is in one of the formats.
fn document(json: &mut Json<'_>, wanted: Format, into: &mut Collector) -> Result<bool, Broken> {
    match json.peek()? {
        b'[' => list(json, wanted, NESTED, into),
        b'{' => object(json, wanted, into),
        found if json.window.at() == 0 => Err(json.broken(Why::Byte { found, wanted: A_FILE })),
        found => Err(json.broken(Why::Byte { found, wanted: "'{' or '['" })),
    }
}

/// A list of spans (Zipkin) or traces (Jaeger), or of lists of them. An empty one is any of these.
fn list(
    json: &mut Json<'_>,
    wanted: Format,
    nested: usize,
    into: &mut Collector,
) -> Result<bool, Broken> {
    let (mut elements, mut known) = (0, 0);
    let mut turn = Turn::default();
    json.array()?;
    while json.element(&mut turn)? {
        elements += 1;
        known += u64::from(match json.peek()? {
            b'{' => object(json, wanted, into)?,
            b'[' if nested > 0 => list(json, wanted, nested - 1, into)?,
            _ => {
                json.skip()?;
                false
            }
        });
    }
    Ok(known > 0 || elements == 0)
}

fn object(json: &mut Json<'_>, wanted: Format, into: &mut Collector) -> Result<bool, Broken> {
    let mut object = Object { at: json.window.at(), wanted, known: false, trace: None, span: None };
    json.object()?;
    let read = object.members(json, NESTED, into);
    if let Some(trace) = object.trace {
        trace.end(into);
    }
    read?;
    if let Some(span) = object.span {
        span.end(into);
    }
    Ok(object.known)
}

/// An object whose kind its members tell.
struct Object {
    at: u64,
    wanted: Format,
    known: bool,
    trace: Option<jaeger::Trace>,
    span: Option<zipkin::Span>,
}

impl Object {
    fn members(
        &mut self,
        json: &mut Json<'_>,
        nested: usize,
        into: &mut Collector,
    ) -> Result<(), Broken> {
        let mut turn = Turn::default();
        while let Some(member) = json.key(&mut turn, Member::of)? {
            let Some(member) = member else {
                json.skip()?;
                continue;
            };
            if !member.format().is_none_or(|format| self.wanted.allows(format)) {
                json.skip()?;
                continue;
            }
            match member {
                Member::Wrapper => {
                    if nested > 0 && json.object()? {
                        self.members(json, nested - 1, into)?;
                    }
                    continue;
                }
                Member::Traces => jaeger::traces(json, into)?,
                Member::Trace(member) => {
                    let trace = self.trace.get_or_insert_with(|| jaeger::Trace::new(into));
                    trace.member(member, json, into)?;
                }
                Member::Resources => otlp_json::resources(json, into)?,
                Member::Span(field) => {
                    let span = self.span.get_or_insert_with(|| zipkin::Span::new(self.at));
                    span.field(field, json, into)?;
                }
            }
            self.known = true;
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Member {
    /// Jaeger's list of traces.
    Traces,
    /// A member of one of Jaeger's traces.
    Trace(jaeger::Member),
    /// OTLP's resources.
    Resources,
    /// What Tempo and the newer API of Jaeger put around OTLP.
    Wrapper,
    /// A field of a span of Zipkin.
    Span(zipkin::Field),
}

impl Member {
    fn of(key: &[u8]) -> Option<Self> {
        match key {
            b"data" => Some(Self::Traces),
            b"resourceSpans" | b"batches" => Some(Self::Resources),
            b"trace" | b"result" => Some(Self::Wrapper),
            _ => zipkin::Field::of(key)
                .map(Self::Span)
                .or_else(|| jaeger::Member::of(key).map(Self::Trace)),
        }
    }

    fn format(self) -> Option<Format> {
        match self {
            Self::Traces | Self::Trace(_) => Some(Format::Jaeger),
            Self::Resources => Some(Format::OtlpJson),
            Self::Span(_) => Some(Format::Zipkin),
            Self::Wrapper => None,
        }
    }
}

/// What a file is that is no protobuf: a table was not looked for, as nobody named its columns.
const A_FILE: &str = "'{', '[' or a table whose columns are named";

/// Objects around objects, lists in lists: no format has more.
const NESTED: usize = 2;
