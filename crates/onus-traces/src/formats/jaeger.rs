//! Jaeger's JSON: traces with their processes, as the query API and the export of its UI write it.

use super::pairs::pairs;
use super::tags::Tag;
use crate::collect::Collector;
use crate::id;
use crate::json::{Broken, Json, Turn};
use crate::names::Names;
use crate::span::Draft;

/// A trace that is being read. Its processes may stand before or behind its spans.
pub(crate) struct Trace {
    /// Its first span among all.
    first: usize,
    /// The names of its processes as numbers; number 0 is no process.
    processes: Names,
    /// The services of these numbers.
    services: Vec<Option<u32>>,
    value: Vec<u8>,
}

/// A member of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    Spans,
    Processes,
}

impl Member {
    pub(crate) fn of(key: &[u8]) -> Option<Self> {
        match key {
            b"spans" => Some(Self::Spans),
            b"processes" => Some(Self::Processes),
            _ => None,
        }
    }
}

/// Reads an array of traces.
pub(crate) fn traces(json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
    if !json.array()? {
        return Ok(());
    }
    let mut elements = Turn::default();
    while json.element(&mut elements)? {
        if !json.object()? {
            continue;
        }
        let mut trace = Trace::new(into);
        let read = trace.members(json, into);
        trace.end(into);
        read?;
    }
    Ok(())
}

impl Trace {
    pub(crate) fn new(into: &Collector) -> Self {
        Self {
            first: into.spans.len(),
            processes: Names::new(PROCESSES),
            services: Vec::new(),
            value: Vec::new(),
        }
    }

    fn members(&mut self, json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
        let mut turn = Turn::default();
        while let Some(member) = json.key(&mut turn, Member::of)? {
            match member {
                Some(member) => self.member(member, json, into)?,
                None => json.skip()?,
            }
        }
        Ok(())
    }

    /// Reads the value of a member.
    pub(crate) fn member(
        &mut self,
        member: Member,
        json: &mut Json<'_>,
        into: &mut Collector,
    ) -> Result<(), Broken> {
        match member {
            Member::Spans => self.spans(json, into),
            Member::Processes => self.processes(json, into),
        }
    }

    /// Gives the spans their services. A trace that was cut off keeps those whose process it named.
    pub(crate) fn end(self, into: &mut Collector) {
        let services = self.services;
        into.settle(self.first, |process| {
            if process & GLOBAL != 0 {
                return Some(process & !GLOBAL);
            }
            services.get(process as usize).copied().flatten()
        });
    }

    fn processes(&mut self, json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
        if !json.object()? {
            return Ok(());
        }
        let mut turn = Turn::default();
        while let Some(process) = json.key(&mut turn, |key| self.processes.number(key))? {
            let service = service(json, into)?;
            if let (Some(process), Some(service)) = (process, service) {
                let process = process as usize;
                if self.services.len() <= process {
                    self.services.resize(process + 1, None);
                }
                self.services[process] = Some(service);
            }
        }
        Ok(())
    }

    fn spans(&mut self, json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
        if !json.array()? {
            return Ok(());
        }
        let mut turn = Turn::default();
        while json.element(&mut turn)? {
            json.peek()?;
            let at = json.window.at();
            if json.object()? {
                self.span(at, json, into)?;
            }
        }
        Ok(())
    }

    fn span(&mut self, at: u64, json: &mut Json<'_>, into: &mut Collector) -> Result<(), Broken> {
        let mut draft = Draft::new(at);
        let mut parents = Parents::default();
        let mut turn = Turn::default();
        while let Some(field) = json.key(&mut turn, Field::of)? {
            match field {
                Field::TraceId => {
                    draft.trace = json.string(|text| into.trace_id(text))?.flatten();
                }
                Field::SpanId => draft.id = json.string(id::span_id)?.unwrap_or(0),
                Field::ParentSpanId => parents.plain = json.string(id::span_id)?.unwrap_or(0),
                Field::References => parents.read(json, into)?,
                Field::StartTime => draft.start = json.integer()?.unwrap_or(0),
                Field::ProcessId => {
                    let process = json.string(|text| self.processes.number(text))?;
                    draft.service = process.flatten().unwrap_or(0);
                }
                Field::Process => {
                    if let Some(service) = service(json, into)? {
                        draft.service = service | GLOBAL;
                    }
                }
                Field::Tags => {
                    pairs(json, &mut self.value, Tag::of, |tag, value| {
                        tag.say(value, &mut draft, |name| into.service(name));
                    })?;
                }
                Field::Other => json.skip()?,
            }
        }
        draft.parent = parents.of(draft.trace);
        into.push(&draft);
        Ok(())
    }
}

/// The service of a process.
fn service(json: &mut Json<'_>, into: &mut Collector) -> Result<Option<u32>, Broken> {
    if !json.object()? {
        return Ok(None);
    }
    let mut service = None;
    let mut turn = Turn::default();
    while let Some(is_name) = json.key(&mut turn, |key| key == b"serviceName")? {
        if is_name {
            service = json.string(|name| into.service(name))?;
        } else {
            json.skip()?;
        }
    }
    Ok(service)
}

/// The spans that a span refers to: the one it is a child of, else one that it follows from.
#[derive(Debug, Default)]
struct Parents {
    child_of: Option<(Option<u128>, u64)>,
    follows_from: Option<(Option<u128>, u64)>,
    /// As older writers give it.
    plain: u64,
}

impl Parents {
    /// References to other traces are links and no parents.
    fn of(&self, trace: Option<u128>) -> u64 {
        let inside = |reference: Option<(Option<u128>, u64)>| {
            reference.filter(|(other, _)| other.is_none() || *other == trace).map(|(_, id)| id)
        };
        inside(self.child_of).or_else(|| inside(self.follows_from)).unwrap_or(self.plain)
    }

    /// The export of the UI nests the whole parent, and its parents, into a reference: all that is
    /// passed over.
    fn read(&mut self, json: &mut Json<'_>, into: &Collector) -> Result<(), Broken> {
        if !json.array()? {
            return Ok(());
        }
        let mut turn = Turn::default();
        while json.element(&mut turn)? {
            if !json.object()? {
                continue;
            }
            let (mut child, mut trace, mut id) = (false, None, 0);
            let mut members = Turn::default();
            while let Some(member) = json.key(&mut members, ReferenceMember::of)? {
                match member {
                    ReferenceMember::Type => {
                        child = json.string(|text| text == b"CHILD_OF")? == Some(true);
                    }
                    ReferenceMember::TraceId => {
                        trace = json.string(|text| into.trace_id(text))?.flatten();
                    }
                    ReferenceMember::SpanId => id = json.string(id::span_id)?.unwrap_or(0),
                    ReferenceMember::Other => json.skip()?,
                }
            }
            let slot = if child { &mut self.child_of } else { &mut self.follows_from };
            if slot.is_none() && id != 0 {
                *slot = Some((trace, id));
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy)]
enum Field {
    TraceId,
    SpanId,
    ParentSpanId,
    References,
    StartTime,
    ProcessId,
    Process,
    Tags,
    Other,
}

impl Field {
    #[inline]
    fn of(key: &[u8]) -> Self {
        match key {
            b"traceID" => Self::TraceId,
            b"spanID" => Self::SpanId,
            b"parentSpanID" => Self::ParentSpanId,
            b"references" => Self::References,
            b"startTime" => Self::StartTime,
            b"processID" => Self::ProcessId,
            b"process" => Self::Process,
            b"tags" => Self::Tags,
            _ => Self::Other,
        }
    }
}

#[derive(Clone, Copy)]
enum ReferenceMember {
    Type,
    TraceId,
    SpanId,
    Other,
}

impl ReferenceMember {
    #[inline]
    fn of(key: &[u8]) -> Self {
        match key {
            b"refType" => Self::Type,
            b"traceID" => Self::TraceId,
            b"spanID" => Self::SpanId,
            _ => Self::Other,
        }
    }
}

/// Processes of one trace.
const PROCESSES: usize = 100_000;

/// Marks the number of a service, beside numbers of processes.
const GLOBAL: u32 = 1 << 31;
