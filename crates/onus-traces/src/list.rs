//! Lists of failed spans from elsewhere: a line has a trace id and a span id, or a span id.

use std::io::Read;

use crate::collect::Collector;
use crate::id;
use crate::records;
use crate::source;
use crate::trouble::Trouble;
use crate::window::Window;

/// Reads a list.
pub(crate) fn read(source: impl Read, into: &mut Collector) {
    let mut window = match source::plain(source) {
        Ok(plain) => Window::new(plain),
        Err(error) => return into.unreadable(&error),
    };
    loop {
        let at = window.at();
        match records::next(&mut window, false, entry) {
            Ok(Some(Some(Entry::Span(trace, span)))) => {
                into.listed.insert((trace, span));
            }
            Ok(Some(Some(Entry::Nothing))) => {}
            // A line that is too long is none of these either.
            Ok(Some(Some(Entry::Unclear) | None)) => into.trouble(at, Trouble::NoPair),
            Ok(None) => return,
            Err(broken) => return into.broken(broken, 0),
        }
    }
}

enum Entry {
    /// A blank line, or a comment.
    Nothing,
    /// Trace zero is any.
    Span(u128, u64),
    Unclear,
}

fn entry(line: &[u8]) -> Entry {
    let line = line.trim_ascii();
    if line.is_empty() || line.starts_with(b"#") {
        return Entry::Nothing;
    }
    let blank = |byte: &u8| matches!(byte, b',' | b';' | b'\t' | b' ');
    let mut words = line.split(blank).filter(|word| !word.is_empty());
    let ids = match (words.next(), words.next(), words.next()) {
        (Some(span), None, None) => Some((0, id::span_id(span))),
        (Some(trace), Some(span), None) => {
            id::listed_trace_id(trace).map(|trace| (trace, id::span_id(span)))
        }
        (_, _, _) => None,
    };
    match ids {
        Some((trace, span)) if span != 0 => Entry::Span(trace, span),
        Some(_) | None => Entry::Unclear,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::Limits;

    #[test]
    fn one_span_on_each_line() {
        let long = "x".repeat(300_000);
        let text = format!(
            "# TraceID,SpanID\n00a9ae16ba5a79f52bdee555c0afe53c,fe9cd1bcecb22f38\r\n\n \
             0000000000000000000000000000000b\t0c \nfe9cd1bcecb22f39\na,b,c\n{long}\n,\nA B"
        );
        let mut collector = Collector::new(Limits::default());
        assert!(collector.begin("errors.txt"));
        read(text.as_bytes(), &mut collector);
        let mut listed: Vec<_> = collector.listed.iter().copied().collect();
        listed.sort_unstable();
        let a = id::listed_trace_id(b"A").expect("it is an id");
        let mut expected = [
            (0, 0xfe9c_d1bc_ecb2_2f39),
            (0xb, 0xc),
            (0x00a9_ae16_ba5a_79f5_2bde_e555_c0af_e53c, 0xfe9c_d1bc_ecb2_2f38),
            (a, 0xb),
        ];
        expected.sort_unstable();
        assert_eq!(listed, expected);
        assert_eq!(collector.troubles.skipped.lines, 3);
        let warnings = collector.troubles.warnings(&collector.files);
        let third = text.find("a,b,c").map(|at| at as u64);
        assert_eq!(warnings[0].at, third);
    }
}
