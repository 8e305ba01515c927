//! One story in every format shows the same.

use std::io::{self, Read, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use onus_traces::{Columns, Format, Import, Limits, Reading, Report, Service};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::story::{self, EDGES, Told};
use crate::{edges, report, report_of, warnings};

#[track_caller]
fn check(dump: &[u8]) {
    check_report(&report(dump));
}

#[track_caller]
fn check_report(report: &Report) {
    assert_eq!(
        warnings(report),
        ["never seen to fail, though their callees did: shop; a caller that \
        does not report its errors looks fail-open too"]
    );
    assert_eq!(edges(report), EDGES);
    assert_eq!((report.summary.spans, report.summary.traces), (7, 1));
}

fn hex(id: u128, bytes: usize) -> String {
    format!("{id:0width$x}", width = bytes * 2)
}

fn base64(id: u128, bytes: usize) -> String {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let id = &id.to_be_bytes()[16 - bytes..];
    let mut text = String::new();
    for chunk in id.chunks(3) {
        let mut three = [0; 4];
        three[1..=chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes(three);
        for digit in 0..4_usize {
            let value = (number >> (18 - 6 * digit)) as usize & 63;
            text.push(if digit <= chunk.len() { DIGITS[value] as char } else { '=' });
        }
    }
    text
}

#[test]
fn jaeger_api() {
    check(story::jaeger(story::plain_reference).as_bytes());
}

#[test]
fn jaeger_ui_nests_whole_parents_into_references() {
    // Trap 8.
    fn nested(told: &Told) -> String {
        let Some(parent) = story::STORY.iter().find(|other| other.id == told.parent) else {
            return String::new();
        };
        let plain = story::plain_reference(told);
        let fields = plain.trim_start_matches('{').trim_end_matches('}');
        format!(
            r#"{{"span":{{"spanID":"{:x}","traceID":"{:x}","references":[{}],"tags":[
            {{"key":"error","value":true}}],"process":{{"serviceName":"nested"}}}},{fields}}}"#,
            parent.id,
            story::TRACE,
            nested(parent)
        )
    }
    check(story::jaeger(nested).as_bytes());
}

#[test]
fn jaeger_traces_without_their_envelope() {
    let envelope = story::jaeger(story::plain_reference);
    let begin = envelope.find('[').expect("a list") + 1;
    let end = envelope.rfind(']').expect("a list");
    check(&envelope.as_bytes()[begin..end]);
    check(format!("[{}]", &envelope[begin..end]).as_bytes());
}

#[test]
fn zipkin_lists_and_lists_of_lists() {
    let spans = story::zipkin();
    check(format!("[{}]", spans.join(",")).as_bytes());
    let (some, others) = spans.split_at(3);
    check(format!("[[{}],[{}]]", some.join(","), others.join(",")).as_bytes());
    check(spans.join("\n").as_bytes());
}

#[test]
fn otlp_json_of_every_version() {
    // Trap 4.
    check(story::otlp_json("resourceSpans", "scopeSpans", hex).as_bytes());
    check(story::otlp_json("batches", "instrumentationLibrarySpans", base64).as_bytes());
    let tempo = story::otlp_json("resourceSpans", "scopeSpans", base64);
    check(format!(r#"{{"trace":{tempo}}}"#).as_bytes());
    check(format!("{{\"result\":{tempo}}}\n").as_bytes());
}

#[test]
fn otlp_protobuf_whole_and_behind_lengths() {
    let message = story::otlp_protobuf();
    check(&message);
    let length = u32::try_from(message.len()).expect("it is short").to_be_bytes();
    check(&[&length[..], &message].concat());
    check(&[&length[..], &message, &length, &message].concat());
}

#[test]
fn tables_by_their_columns() {
    let column = |name: &str| name.to_owned();
    let columns = Columns {
        trace: column("trace"),
        span: column("span"),
        parent: column("parent"),
        service: Service::Name(column("service")),
        kind: Some(column("kind")),
        error: Some(column("failed")),
        peer: Some(column("peer")),
        start: Some(column("start")),
    };
    let table = story::table();
    for text in [table.clone(), table.replace(',', "\t"), format!("{table}{table}")] {
        let mut import = Import::new(Limits::default());
        import.columns(columns.clone());
        import.read("table", text.as_bytes(), Format::Detect);
        check_report(&import.report(Reading::default()));
    }
}

#[test]
fn the_same_spans_in_many_files_count_once() {
    let jaeger = story::jaeger(story::plain_reference);
    let otlp = story::otlp_json("resourceSpans", "scopeSpans", hex);
    let zipkin = format!("[{}]", story::zipkin().join(","));
    let report = report_of(&[
        ("1", jaeger.as_bytes()),
        ("2", otlp.as_bytes()),
        ("3", zipkin.as_bytes()),
        ("4", &story::otlp_protobuf()),
        ("5", jaeger.as_bytes()),
    ]);
    check_report(&report);
    assert_eq!(report.summary.merged, 28);
}

#[test]
fn a_trace_may_be_spread_over_files() {
    let spans = story::zipkin();
    let (some, others) = spans.split_at(4);
    let report = report_of(&[
        ("1", format!("[{}]", others.join(",")).as_bytes()),
        ("2", format!("[{}]", some.join(",")).as_bytes()),
    ]);
    check_report(&report);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    compress_to_vec(bytes, CompressionLevel::Fastest)
}

#[test]
fn compressed_whole_and_in_pieces() {
    let dump = story::jaeger(story::plain_reference);
    let (one, other) = dump.as_bytes().split_at(1000);
    check(&gzip(dump.as_bytes()));
    check(&[gzip(one), gzip(other)].concat());
    check(&zstd(dump.as_bytes()));
    // A frame that holds no data stands between the others.
    let skipped = [0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    check(&[&zstd(one)[..], &skipped, &zstd(other)].concat());
    check(&gzip(&story::otlp_protobuf()));
}

#[test]
fn a_source_may_give_as_little_as_it_likes() {
    struct Drops<'d>(&'d [u8]);
    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = self.0.len().min(buffer.len()).min(1);
            self.0.read(&mut buffer[..length])
        }
    }
    let jaeger = story::jaeger(story::plain_reference).into_bytes();
    for dump in [jaeger.clone(), story::otlp_protobuf(), gzip(&jaeger), zstd(&jaeger)] {
        let mut import = Import::new(Limits::default());
        import.read("drops", Drops(&dump), Format::Detect);
        check_report(&import.report(Reading::default()));
    }
}

#[test]
fn a_forced_format_reads_no_other() {
    let jaeger = story::jaeger(story::plain_reference).into_bytes();
    for (format, wanted) in [
        (Format::Zipkin, "a dump in Zipkin's JSON"),
        (Format::OtlpJson, "a dump in OTLP's JSON"),
        (Format::Table, "a table"),
    ] {
        let mut import = Import::new(Limits::default());
        import.read("dump", &jaeger[..], format);
        let report = import.report(Reading::default());
        assert_eq!(
            warnings(&report),
            [format!("dump: byte 0: this is not {wanted}; file skipped")]
        );
        assert_eq!((report.skipped.files, report.summary.spans), (1, 0));
    }
    let mut import = Import::new(Limits::default());
    import.read("dump", &jaeger[..], Format::Jaeger);
    check_report(&import.report(Reading::default()));
}
