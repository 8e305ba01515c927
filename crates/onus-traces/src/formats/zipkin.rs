//! Zipkin's JSON, version 2: lists of spans that name their own service. Client and server of a
//! call may share one id (B3).

use super::tags::{self, PEER_SERVICE, Tag};
use crate::collect::Collector;
use crate::id;
use crate::json::{Broken, Json, Turn};
use crate::span::Draft;

/// A span that is being read.
pub(crate) struct Span(Draft);

impl Span {
    /// A span that begins at `at`.
    pub(crate) fn new(at: u64) -> Self {
        Self(Draft::new(at))
    }

    /// Reads the value of a field.
    pub(crate) fn field(
        &mut self,
        field: Field,
        json: &mut Json<'_>,
        into: &mut Collector,
    ) -> Result<(), Broken> {
        let draft = &mut self.0;
        match field {
            Field::TraceId => draft.trace = json.string(|text| into.trace_id(text))?.flatten(),
            Field::Id => draft.id = json.string(id::span_id)?.unwrap_or(0),
            Field::ParentId => draft.parent = json.string(id::span_id)?.unwrap_or(0),
            Field::Timestamp => draft.start = json.integer()?.unwrap_or(0),
            Field::Kind => draft.kind = json.string(tags::kind)?.flatten().unwrap_or_default(),
            Field::LocalEndpoint => draft.service = endpoint(json, into)?,
            Field::RemoteEndpoint => draft.peer(endpoint(json, into)?, PEER_SERVICE),
            Field::Tags => self.tags(json, into)?,
        }
        Ok(())
    }

    fn tags(&mut self, json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
        if !json.object()? {
            return Ok(());
        }
        let mut turn = Turn::default();
        while let Some(tag) = json.key(&mut turn, Tag::of)? {
            match tag {
                Some(Tag::Error) => {
                    json.scalar(|value| Tag::say_error(value, &mut self.0))?;
                }
                Some(tag) => {
                    json.scalar(|value| tag.say(value, &mut self.0, |name| into.service(name)))?;
                }
                None => json.skip()?,
            }
        }
        Ok(())
    }

    /// Keeps the span.
    pub(crate) fn end(&self, into: &mut Collector) {
        let first = into.spans.len();
        into.push(&self.0);
        into.settle(first, Some);
    }
}

fn endpoint(json: &mut Json<'_>, into: &mut Collector) -> Result<u32, Broken> {
    let mut service = 0;
    if json.object()? {
        let mut turn = Turn::default();
        while let Some(is_name) = json.key(&mut turn, |key| key == b"serviceName")? {
            if is_name {
                service = json.string(|name| into.service(name))?.unwrap_or(0);
            } else {
                json.skip()?;
            }
        }
    }
    Ok(service)
}

/// A field of a span that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field {
    TraceId,
    Id,
    ParentId,
    Timestamp,
    Kind,
    LocalEndpoint,
    RemoteEndpoint,
    Tags,
}

impl Field {
    #[inline]
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        Some(match key {
            b"traceId" => Self::TraceId,
            b"id" => Self::Id,
            b"parentId" => Self::ParentId,
            b"timestamp" => Self::Timestamp,
            b"kind" => Self::Kind,
            b"localEndpoint" => Self::LocalEndpoint,
            b"remoteEndpoint" => Self::RemoteEndpoint,
            b"tags" => Self::Tags,
            _ => return None,
        })
    }
}
