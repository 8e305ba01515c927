//! OTLP as protobuf: one message of all spans, or messages behind their lengths, as the collector's
//! file exporter writes them.

use super::tags::Tag;
use crate::collect::Collector;
use crate::id;
use crate::json::{Broken, Why};
use crate::span::{Draft, Kind};
use crate::trouble::Trouble;
use crate::window::Window;
use crate::wire::{Value, Wire};

/// Reads a file.
///
/// What is broken within a message costs no more than that message, whose end is known.
pub(crate) fn messages(window: Window<'_>, into: &mut Collector) {
    let mut reader = Reader { wire: Wire::new(window), key: Vec::new() };
    // No message begins with a zero; the first byte of a length does.
    let lengths = reader.wire.window.first() == Some(0);
    let read = if lengths { reader.framed(into) } else { reader.traces(u64::MAX, into) };
    if let Err(broken) = read {
        // Without a length there is no place to go on from.
        let mut end = broken.at.max(reader.wire.window.at());
        while matches!(reader.wire.at_end(), Ok(false)) {
            let seen = reader.wire.window.seen().len();
            reader.wire.window.advance(seen);
            end = reader.wire.window.at();
        }
        let bytes = end - broken.at;
        into.broken(broken, bytes);
    }
    if let Some((texts, at)) = reader.wire.long {
        into.trouble(at, Trouble::LongText { texts });
    }
}

struct Reader<'r> {
    wire: Wire<'r>,
    /// Room for the key of an attribute.
    key: Vec<u8>,
}

impl Reader<'_> {
    fn framed(&mut self, into: &mut Collector) -> Result<(), Broken> {
        while !self.wire.at_end()? {
            let length = u64::from(u32::from_be_bytes(self.wire.array()?));
            let end = self.wire.window.at() + length;
            self.contained(end, into, |reader, into| reader.traces(end, into))?;
        }
        Ok(())
    }

    fn traces(&mut self, end: u64, into: &mut Collector) -> Result<(), Broken> {
        while let Some((number, value)) = self.wire.field(end)? {
            match (number, value) {
                (1, Value::Until(end)) => {
                    let first = into.spans.len();
                    let mut service = 0;
                    self.contained(end, into, |reader, into| {
                        reader.resource_spans(end, &mut service, into)
                    })?;
                    into.settle(first, |_| Some(service));
                }
                _ => self.wire.skip(value)?,
            }
        }
        Ok(())
    }

    fn resource_spans(
        &mut self,
        end: u64,
        service: &mut u32,
        into: &mut Collector,
    ) -> Result<(), Broken> {
        while let Some((number, value)) = self.wire.field(end)? {
            match (number, value) {
                (1, Value::Until(end)) => self.contained(end, into, |reader, into| {
                    reader.attributes(1, end, |key, value| {
                        if key == b"service.name" {
                            *service = into.service(value);
                        }
                    })
                })?,
                // Spans by scope, and by library as they were called once.
                (2 | 1000, Value::Until(end)) => {
                    self.contained(end, into, |reader, into| reader.scope_spans(end, into))?;
                }
                _ => self.wire.skip(value)?,
            }
        }
        Ok(())
    }

    fn scope_spans(&mut self, end: u64, into: &mut Collector) -> Result<(), Broken> {
        while let Some((number, value)) = self.wire.field(end)? {
            match (number, value) {
                (2, Value::Until(end)) => {
                    let mut draft = Draft::new(self.wire.window.at());
                    let mut whole = false;
                    self.contained(end, into, |reader, into| {
                        reader.span(end, &mut draft, into)?;
                        whole = true;
                        Ok(())
                    })?;
                    if whole {
                        into.push(&draft);
                    }
                }
                _ => self.wire.skip(value)?,
            }
        }
        Ok(())
    }

    fn span(&mut self, end: u64, draft: &mut Draft, into: &mut Collector) -> Result<(), Broken> {
        while let Some((number, value)) = self.wire.field(end)? {
            match (number, value) {
                (1, _) => draft.trace = self.wire.bytes(value, id::of_bytes)?.flatten(),
                (2, _) => draft.id = self.span_id(value)?,
                (4, _) => draft.parent = self.span_id(value)?,
                (6, Value::Number(kind)) => {
                    draft.kind = match kind {
                        2 | 5 => Kind::Callee,
                        3 | 4 => Kind::Caller,
                        _ => Kind::Internal,
                    };
                }
                (7, Value::Number(nanos)) => draft.start = nanos / 1_000,
                (9, Value::Until(end)) => self.attribute(end, |key, value| {
                    if let Some(tag) = Tag::of(key) {
                        tag.say(value, draft, |name| into.service(name));
                    }
                })?,
                (15, Value::Until(end)) => {
                    while let Some((number, value)) = self.wire.field(end)? {
                        draft.error |= (number, value) == (3, Value::Number(2));
                        self.wire.skip(value)?;
                    }
                }
                _ => self.wire.skip(value)?,
            }
        }
        Ok(())
    }

    fn span_id(&mut self, value: Value) -> Result<u64, Broken> {
        let id = self.wire.bytes(value, |bytes| (bytes.len() <= 8).then(|| id::of_bytes(bytes)))?;
        Ok(id.flatten().flatten().unwrap_or(0) as u64)
    }

    /// Tells `said` of the attributes that are the fields `wanted` of a message.
    fn attributes(
        &mut self,
        wanted: u32,
        end: u64,
        mut said: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Broken> {
        while let Some((number, value)) = self.wire.field(end)? {
            match value {
                Value::Until(end) if number == wanted => self.attribute(end, &mut said)?,
                Value::Until(_) | Value::Number(_) => self.wire.skip(value)?,
            }
        }
        Ok(())
    }

    /// Tells `said` of an attribute, if its value is a scalar. Writers put the key first.
    fn attribute(&mut self, end: u64, mut said: impl FnMut(&[u8], &[u8])) -> Result<(), Broken> {
        let Self { wire, key } = self;
        key.clear();
        while let Some((number, value)) = wire.field(end)? {
            match (number, value) {
                (1, _) => {
                    // Attributes that nobody looks at have keys that nobody has to keep.
                    wire.bytes(value, |text| key.extend_from_slice(text))?;
                }
                (2, Value::Until(_)) if Tag::of(key).is_none() && key != b"service.name" => {
                    wire.skip(value)?;
                }
                (2, Value::Until(end)) => {
                    while let Some((number, value)) = wire.field(end)? {
                        match (number, value) {
                            (1, Value::Until(_)) => {
                                wire.bytes(value, |text| said(key, text))?;
                            }
                            (2, Value::Number(truth)) => {
                                said(key, if truth == 0 { b"false" } else { b"true" });
                            }
                            (3, Value::Number(number)) => {
                                said(key, number.to_string().as_bytes());
                            }
                            _ => wire.skip(value)?,
                        }
                    }
                }
                _ => wire.skip(value)?,
            }
        }
        Ok(())
    }

    /// Reads what ends at `end`. If it is broken that is told, and reading goes on behind it; only
    /// the end of the input ends everything.
    fn contained(
        &mut self,
        end: u64,
        into: &mut Collector,
        read: impl FnOnce(&mut Self, &mut Collector) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let Err(broken) = read(self, into) else { return Ok(()) };
        match broken.why {
            Why::End | Why::Input(_) => Err(broken),
            Why::Byte { .. } | Why::Message(_) => {
                self.wire.pass(end)?;
                let bytes = end.saturating_sub(broken.at);
                into.broken(broken, bytes);
                Ok(())
            }
        }
    }
}
