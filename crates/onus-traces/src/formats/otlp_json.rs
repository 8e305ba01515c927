//! OTLP as JSON: `resourceSpans` of the protocol, `batches` of Tempo, ids in hex or base64.

use super::pairs::pairs;
use super::tags::{self, Tag};
use crate::collect::Collector;
use crate::id;
use crate::json::{Broken, Json, Turn};
use crate::span::Draft;

/// Reads a list of resources with their spans.
pub(crate) fn resources(json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
    if !json.array()? {
        return Ok(());
    }
    let mut turn = Turn::default();
    let mut room = Vec::new();
    while json.element(&mut turn)? {
        if !json.object()? {
            continue;
        }
        let first = into.spans.len();
        let mut service = None;
        let read = resource_spans(json, &mut room, &mut service, into);
        if read.is_ok() {
            // A resource that was read to its end without a name has none.
            service = service.or(Some(0));
        }
        into.settle(first, |_| service);
        read?;
    }
    Ok(())
}

/// The resource may stand before or behind its spans.
fn resource_spans(
    json: &mut Json<'_>,
    room: &mut Vec<u8>,
    service: &mut Option<u32>,
    into: &mut Collector,
) -> Result<(), Broken> {
    let mut turn = Turn::default();
    while let Some(member) = json.key(&mut turn, ResourceMember::of)? {
        match member {
            ResourceMember::Resource => {
                if !json.object()? {
                    continue;
                }
                let mut turn = Turn::default();
                while let Some(wanted) = json.key(&mut turn, |key| key == b"attributes")? {
                    if !wanted {
                        json.skip()?;
                        continue;
                    }
                    let is_name = |key: &[u8]| (key == b"service.name").then_some(());
                    pairs(json, room, is_name, |(), name| *service = Some(into.service(name)))?;
                }
                // Spans that follow in a broken document belong to it all the same.
                service.get_or_insert(0);
            }
            ResourceMember::Scopes => scopes(json, room, into)?,
            ResourceMember::Other => json.skip()?,
        }
    }
    Ok(())
}

fn scopes(json: &mut Json<'_>, room: &mut Vec<u8>, into: &mut Collector) -> Result<(), Broken> {
    if !json.array()? {
        return Ok(());
    }
    let mut turn = Turn::default();
    while json.element(&mut turn)? {
        if !json.object()? {
            continue;
        }
        let mut members = Turn::default();
        while let Some(wanted) = json.key(&mut members, |key| key == b"spans")? {
            if wanted {
                spans(json, room, into)?;
            } else {
                json.skip()?;
            }
        }
    }
    Ok(())
}

fn spans(json: &mut Json<'_>, room: &mut Vec<u8>, into: &mut Collector) -> Result<(), Broken> {
    if !json.array()? {
        return Ok(());
    }
    let mut turn = Turn::default();
    while json.element(&mut turn)? {
        json.peek()?;
        let mut draft = Draft::new(json.window.at());
        if json.object()? {
            span(&mut draft, json, room, into)?;
            into.push(&draft);
        }
    }
    Ok(())
}

fn span(
    draft: &mut Draft,
    json: &mut Json<'_>,
    room: &mut Vec<u8>,
    into: &mut Collector,
) -> Result<(), Broken> {
    let mut turn = Turn::default();
    while let Some(field) = json.key(&mut turn, Field::of)? {
        match field {
            Field::TraceId => draft.trace = json.string(|text| into.trace_id(text))?.flatten(),
            Field::SpanId => draft.id = json.string(id::span_id)?.unwrap_or(0),
            Field::ParentSpanId => draft.parent = json.string(id::span_id)?.unwrap_or(0),
            Field::StartTime => draft.start = json.integer()?.unwrap_or(0) / 1_000,
            Field::Kind => draft.kind = json.scalar(tags::kind)?.flatten().unwrap_or_default(),
            Field::Attributes => pairs(json, room, Tag::of, |tag, value| {
                tag.say(value, draft, |name| into.service(name));
            })?,
            Field::Status => {
                if !json.object()? {
                    continue;
                }
                let mut turn = Turn::default();
                while let Some(is_code) = json.key(&mut turn, |key| key == b"code")? {
                    if is_code {
                        let error = |code: &[u8]| matches!(code, b"2" | b"STATUS_CODE_ERROR");
                        draft.error |= json.scalar(error)? == Some(true);
                    } else {
                        json.skip()?;
                    }
                }
            }
            Field::Other => json.skip()?,
        }
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum ResourceMember {
    Resource,
    Scopes,
    Other,
}

impl ResourceMember {
    fn of(key: &[u8]) -> Self {
        match key {
            b"resource" => Self::Resource,
            b"scopeSpans" | b"instrumentationLibrarySpans" => Self::Scopes,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy)]
enum Field {
    TraceId,
    SpanId,
    ParentSpanId,
    StartTime,
    Kind,
    Attributes,
    Status,
    Other,
}

impl Field {
    #[inline]
    fn of(key: &[u8]) -> Self {
        match key {
            b"traceId" => Self::TraceId,
            b"spanId" => Self::SpanId,
            b"parentSpanId" => Self::ParentSpanId,
            b"startTimeUnixNano" => Self::StartTime,
            b"kind" => Self::Kind,
            b"attributes" => Self::Attributes,
            b"status" => Self::Status,
            _ => Self::Other,
        }
    }
}
