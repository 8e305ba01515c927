//! One span for all records of it: dumps repeat spans, and B3 gives both sides of a call one id.

use crate::span::{Kind, Span};

/// Brings the spans into the order of their traces and ids, each side of each span once.
///
/// Records are one span if they have the same trace, id and service and are on the same side. A
/// record that says nothing about its side belongs to the callee's if its service does.
pub(crate) fn merge(spans: &mut Vec<Span>) {
    spans.sort_unstable_by_key(|span| (span.trace, span.id, span.file, span.at));
    let mut kept = 0;
    let mut next = 0;
    while next < spans.len() {
        let first = spans[next];
        let alike = |span: &&Span| span.trace == first.trace && span.id == first.id;
        let records = spans[next..].iter().take_while(alike).count();
        if records == 1 {
            spans[kept] = first;
            kept += 1;
        } else {
            kept = merge_records(spans, next..next + records, kept);
        }
        next += records;
    }
    spans.truncate(kept);
    spans.shrink_to_fit();
}

/// Merges the records of one id and puts what is left to `kept`; returns where that ends.
fn merge_records(spans: &mut [Span], records: std::ops::Range<usize>, mut kept: usize) -> usize {
    let group = &mut spans[records.clone()];
    // Sides first, then services; a record without a service comes last and joins any of its side.
    group.sort_by_key(|span| (span.kind != Kind::Callee, span.service == 0, span.service));
    let callees = group.iter().filter(|span| span.kind == Kind::Callee).count();
    let (callee, others) = group.split_at_mut(callees);
    for span in others {
        if span.kind == Kind::Internal
            && callee.binary_search_by_key(&(span.service == 0, span.service), key).is_ok()
        {
            span.kind = Kind::Callee;
        }
    }
    group.sort_by_key(|span| (span.kind != Kind::Callee, span.service == 0, span.service));
    let begin = kept;
    for index in records {
        let span = spans[index];
        let same = |other: &Span| {
            (other.kind == Kind::Callee) == (span.kind == Kind::Callee)
                && (other.service == span.service || span.service == 0)
        };
        match kept.checked_sub(1).filter(|&last| last >= begin && same(&spans[last])) {
            Some(last) => spans[last] = joined(spans[last], span),
            None => {
                spans[kept] = span;
                kept += 1;
            }
        }
    }
    kept
}

fn key(span: &Span) -> (bool, u32) {
    (span.service == 0, span.service)
}

fn joined(one: Span, other: Span) -> Span {
    let or = |one: u64, other: u64| if one == 0 { other } else { one };
    Span {
        parent: or(one.parent, other.parent),
        start: or(one.start, other.start),
        peer: if one.peer == 0 { other.peer } else { one.peer },
        kind: one.kind.max(other.kind),
        // A span is mute only if none of its records could have said more.
        flags: one.flags.joined(other.flags),
        ..one
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Flags;

    fn span(id: u64, kind: Kind, service: u32) -> Span {
        Span {
            trace: 1,
            id,
            parent: 0,
            start: 0,
            at: 0,
            service,
            peer: 0,
            file: 0,
            kind,
            flags: Flags::default(),
        }
    }

    #[test]
    fn one_span_for_each_side_of_each_id() {
        use Kind::{Callee, Caller, Internal};
        fn check(records: &[(u64, Kind, u32)], expected: &[(u64, Kind, u32)]) {
            let mut spans: Vec<_> = records.iter().map(|&(id, k, s)| span(id, k, s)).collect();
            merge(&mut spans);
            let merged: Vec<_> =
                spans.iter().map(|span| (span.id, span.kind, span.service)).collect();
            assert_eq!(merged, expected, "{records:?}");
            spans.reverse();
            merge(&mut spans);
            assert_eq!(spans.len(), expected.len(), "merged again: {records:?}");
        }
        check(&[(2, Internal, 1), (1, Internal, 1)], &[(1, Internal, 1), (2, Internal, 1)]);
        // A dump that repeats a span.
        check(&[(1, Caller, 1), (1, Caller, 1), (1, Caller, 1)], &[(1, Caller, 1)]);
        // B3: client and server, also of one service.
        check(&[(1, Caller, 1), (1, Callee, 2)], &[(1, Callee, 2), (1, Caller, 1)]);
        check(&[(1, Callee, 1), (1, Caller, 1)], &[(1, Callee, 1), (1, Caller, 1)]);
        // A record without a kind belongs to the server's service, else to the client's.
        check(
            &[(1, Internal, 2), (1, Caller, 1), (1, Callee, 2)],
            &[(1, Callee, 2), (1, Caller, 1)],
        );
        check(&[(1, Internal, 1), (1, Caller, 1)], &[(1, Caller, 1)]);
        // One without a service joins its side.
        check(&[(1, Caller, 0), (1, Caller, 3)], &[(1, Caller, 3)]);
        check(&[(1, Caller, 0)], &[(1, Caller, 0)]);
        // Two services that drew the same id are two spans.
        check(&[(1, Internal, 1), (1, Internal, 2)], &[(1, Internal, 1), (1, Internal, 2)]);
    }

    #[test]
    fn a_span_keeps_what_any_record_says() {
        let one = Span { parent: 7, flags: Flags::ERROR, ..span(1, Kind::Caller, 1) };
        let other = Span { start: 9, peer: 4, at: 5, ..span(1, Kind::Caller, 1) };
        let mut spans = vec![other, one];
        merge(&mut spans);
        assert_eq!(spans, [Span { start: 9, peer: 4, ..one }]);
    }
}
