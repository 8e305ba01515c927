//! Tables with a header line, by the names of their columns.

use std::borrow::Cow;

use super::tags::{self, PEER_SERVICE};
use crate::collect::Collector;
use crate::id;
use crate::json::Broken;
use crate::records;
use crate::span::Draft;
use crate::trouble::Trouble;
use crate::window::Window;

/// The names of the columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// The trace id.
    pub trace: String,
    /// The span's own id.
    pub span: String,
    /// The id of its parent; empty, `root`, `null` and the like for none.
    pub parent: String,
    /// Who served it.
    pub service: Service,
    /// `client`, `server` and the like.
    pub kind: Option<String>,
    /// Whether it failed: `true`, `1`, `error` and the like, or the status of an HTTP answer.
    pub error: Option<String>,
    /// Who it calls.
    pub peer: Option<String>,
    /// When it began: seconds, milli-, micro- or nanoseconds since 1970.
    pub start: Option<String>,
}

/// The column that says whose span it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// The name of the service.
    Name(String),
    /// The name of its pod, whose ending is taken off.
    Pod(String),
}

impl Default for Service {
    fn default() -> Self {
        Self::Name(String::new())
    }
}

/// Reads a table.
pub(crate) fn rows(window: &mut Window<'_>, columns: &Columns, into: &mut Collector) {
    if let Err(broken) = read(window, columns, into) {
        into.broken(broken, 0);
    }
}

fn read(window: &mut Window<'_>, columns: &Columns, into: &mut Collector) -> Result<(), Broken> {
    let Some(header) = records::next(window, true, <[u8]>::to_vec)? else { return Ok(()) };
    let header = header.unwrap_or_default();
    let places = match Places::of(columns, &header) {
        Ok(places) => places,
        Err(column) => {
            into.trouble(0, Trouble::NoColumn { column: column.to_owned() });
            return Ok(());
        }
    };
    loop {
        let at = window.at();
        let row = records::next(window, true, |row| {
            // Files that were put one behind the other repeat their header.
            if !row.is_empty() && row != header {
                places.span(at, row, into);
            }
        });
        match row? {
            Some(Some(())) => {}
            Some(None) => into.trouble(at, Trouble::LongText { texts: 1 }),
            None => return Ok(()),
        }
    }
}

/// Which cell of a row each column is.
struct Places {
    separator: u8,
    /// What the cell says, if anything.
    cells: Vec<Option<Cell>>,
    mute: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cell {
    Trace,
    Span,
    Parent,
    Service,
    Pod,
    Kind,
    Error,
    Peer,
    Start,
}

impl Places {
    fn of<'c>(columns: &'c Columns, header: &[u8]) -> Result<Self, &'c str> {
        let count = |sign: u8| memchr::memchr_iter(sign, header).count();
        let most = [b',', b'\t', b';', b'|'].into_iter().rev().max_by_key(|&sign| count(sign));
        let separator = most.unwrap_or(b',');
        let names: Vec<_> = cells(header, separator).collect();
        let mut places = Self { separator, cells: vec![None; names.len()], mute: false };
        let service = match &columns.service {
            Service::Name(name) => (name, Cell::Service),
            Service::Pod(name) => (name, Cell::Pod),
        };
        let wanted = [
            (&columns.trace, Cell::Trace),
            (&columns.span, Cell::Span),
            (&columns.parent, Cell::Parent),
            service,
        ];
        let optional = [
            (&columns.kind, Cell::Kind),
            (&columns.error, Cell::Error),
            (&columns.peer, Cell::Peer),
            (&columns.start, Cell::Start),
        ];
        let optional = optional.iter().filter_map(|(name, cell)| Some((name.as_ref()?, *cell)));
        for (column, cell) in wanted.into_iter().chain(optional) {
            let is_it = |name: &Cow<'_, [u8]>| name.trim_ascii() == column.as_bytes();
            let place = names.iter().position(is_it).ok_or(column.as_str())?;
            places.cells[place] = Some(cell);
        }
        places.mute = columns.error.is_none();
        Ok(places)
    }

    fn span(&self, at: u64, row: &[u8], into: &mut Collector) {
        let mut draft = Draft::new(at);
        draft.mute = self.mute;
        for (text, cell) in cells(row, self.separator).zip(&self.cells) {
            let text = text.trim_ascii();
            match cell {
                Some(Cell::Trace) => draft.trace = into.trace_id(text),
                Some(Cell::Span) => draft.id = id::span_id(text),
                Some(Cell::Parent) if !is_none(text) => draft.parent = id::span_id(text),
                Some(Cell::Service) => draft.service = into.service(text),
                Some(Cell::Pod) => draft.service = into.service(service_of_pod(text)),
                Some(Cell::Kind) => draft.kind = tags::kind(text).unwrap_or_default(),
                Some(Cell::Error) => {
                    draft.status = tags::status(text);
                    draft.error = draft.status.is_some() || is_true(text);
                }
                Some(Cell::Peer) => {
                    let peer = into.service(text);
                    draft.peer(peer, PEER_SERVICE);
                }
                Some(Cell::Start) => draft.start = micros(text),
                Some(Cell::Parent) | None => {}
            }
        }
        let first = into.spans.len();
        into.push(&draft);
        into.settle(first, Some);
    }
}

/// The cells of a row, out of their quotes.
fn cells(row: &[u8], separator: u8) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = Some(row);
    std::iter::from_fn(move || {
        let text = rest?;
        if text.first() != Some(&b'"') {
            let end = memchr::memchr(separator, text);
            rest = end.map(|end| &text[end + 1..]);
            return Some(Cow::Borrowed(&text[..end.unwrap_or(text.len())]));
        }
        let mut cell = Vec::new();
        let mut text = &text[1..];
        loop {
            let end = memchr::memchr(b'"', text).unwrap_or(text.len());
            cell.extend_from_slice(&text[..end]);
            text = text.get(end + 1..).unwrap_or_default();
            if text.first() != Some(&b'"') {
                break;
            }
            cell.push(b'"');
            text = &text[1..];
        }
        rest = memchr::memchr(separator, text).map(|end| &text[end + 1..]);
        Some(Cow::Owned(cell))
    })
}

/// What tables write into the parent of a first span.
fn is_none(text: &[u8]) -> bool {
    const NONE: [&[u8]; 8] = [b"", b"-", b"root", b"none", b"null", b"nil", b"<nil>", b"nan"];
    NONE.iter().any(|none| text.eq_ignore_ascii_case(none))
}

fn is_true(text: &[u8]) -> bool {
    const TRUE: [&[u8]; 8] =
        [b"true", b"1", b"yes", b"error", b"failed", b"failure", b"status_code_error", b"t"];
    TRUE.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// `shop-6f6cfc45b-h5m2n` of a Deployment and `shop-0` of a StatefulSet belong to `shop`.
fn service_of_pod(pod: &[u8]) -> &[u8] {
    let split = |name: &[u8]| name.iter().rposition(|&byte| byte == b'-');
    let Some(last) = split(pod) else { return pod };
    let ending = &pod[last + 1..];
    if !ending.is_empty() && ending.iter().all(u8::is_ascii_digit) && ending.len() < 5 {
        return &pod[..last];
    }
    let Some(hash) = split(&pod[..last]) else { return pod };
    let drawn = |text: &[u8]| text.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let hash_text = &pod[hash + 1..last];
    if ending.len() == 5 && drawn(ending) && (5..=10).contains(&hash_text.len()) && drawn(hash_text)
    {
        return &pod[..hash];
    }
    pod
}

/// A time of any unit, which its size tells: no dump is older than 1973 or younger than 5138.
fn micros(text: &[u8]) -> u64 {
    let whole = text.split(|&byte| byte == b'.').next().unwrap_or_default();
    let number: u64 = std::str::from_utf8(whole).ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    match number {
        0..100_000_000_000 => number * 1_000_000,
        100_000_000_000..100_000_000_000_000 => number * 1_000,
        100_000_000_000_000..100_000_000_000_000_000 => number,
        100_000_000_000_000_000.. => number / 1_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_come_out_of_their_quotes() {
        for (row, expected) in [
            ("a,b,", &["a", "b", ""][..]),
            ("", &[""]),
            ("\"a,b\",c", &["a,b", "c"]),
            ("\"a\"\"b\"", &["a\"b"]),
            ("\"\",x", &["", "x"]),
            ("\"open,x", &["open,x"]),
        ] {
            let cells: Vec<_> = cells(row.as_bytes(), b',')
                .map(|cell| String::from_utf8_lossy(&cell).into_owned())
                .collect();
            assert_eq!(cells, expected, "{row}");
        }
    }

    #[test]
    fn a_pod_belongs_to_a_service() {
        for (pod, service) in [
            ("ts-gateway-service-6f6cfc45b-h5m2n", "ts-gateway-service"),
            ("ts-order-other-service-7c5f5d9b9f-x2x2x", "ts-order-other-service"),
            ("mysql-0", "mysql"),
            ("shop", "shop"),
            ("shop-api", "shop-api"),
            ("a-b-c", "a-b-c"),
            ("-", "-"),
        ] {
            let found = String::from_utf8_lossy(service_of_pod(pod.as_bytes())).into_owned();
            assert_eq!(found, service, "{pod}");
        }
    }

    #[test]
    fn times_of_every_unit() {
        for text in ["1674982306", "1674982306000", "1674982306000000", "1674982306000000000"] {
            assert_eq!(micros(text.as_bytes()), 1_674_982_306_000_000, "{text}");
        }
        assert_eq!(micros(b"1674982306.5"), 1_674_982_306_000_000);
        assert_eq!(micros(b"yesterday"), 0);
    }
}
