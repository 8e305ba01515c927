//! One story in every format: shop calls stock twice, stock calls its database; stock fails once
//! because the database does, and shop survives.

use std::fmt::Write;

/// A span of the story.
#[derive(Clone, Copy)]
pub(crate) struct Told {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) service: &'static str,
    pub(crate) client: bool,
    pub(crate) error: bool,
    pub(crate) peer: Option<&'static str>,
}

pub(crate) const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

const fn span(id: u64, parent: u64, service: &'static str, client: bool, error: bool) -> Told {
    Told { id, parent, service, client, error, peer: None }
}

const fn database(id: u64, parent: u64, error: bool) -> Told {
    Told { id, parent, service: "stock", client: true, error, peer: Some("postgresql") }
}

pub(crate) const STORY: [Told; 7] = [
    span(0xa1, 0, "shop", false, false),
    span(0xa2, 0xa1, "shop", true, false),
    span(0xa3, 0xa2, "stock", false, false),
    database(0xa4, 0xa3, false),
    span(0xa5, 0xa1, "shop", true, true),
    span(0xa6, 0xa5, "stock", false, true),
    database(0xa7, 0xa6, true),
];

/// What the story shows, in any format.
pub(crate) const EDGES: [super::EdgeRow<'static>; 2] =
    [("shop", "stock", 2, 1, 0), ("stock", "postgresql", 2, 1, 1)];

/// As Jaeger's API gives it; `reference` writes what a span refers to.
pub(crate) fn jaeger(reference: impl Fn(&Told) -> String) -> String {
    let mut spans = String::new();
    for told in &STORY {
        let kind = if told.client { "client" } else { "server" };
        let peer = told.peer.map_or(String::new(), |peer| {
            format!(r#",{{"key":"peer.service","type":"string","value":"{peer}"}}"#)
        });
        let comma = if spans.is_empty() { "" } else { "," };
        let _ = write!(
            spans,
            r#"{comma}{{"traceID":"{TRACE:x}","spanID":"{:x}","operationName":"GET /\u00e9",
            "references":[{}],"startTime":1796000000000000,"duration":7,"tags":[
            {{"key":"span.kind","type":"string","value":"{kind}"}},
            {{"key":"error","type":"bool","value":{}}}{peer}],"logs":[],
            "processID":"{}","warnings":null}}"#,
            told.id,
            reference(told),
            told.error,
            if told.service == "shop" { "p1" } else { "p2" },
        );
    }
    format!(
        r#"{{"data":[{{"traceID":"{TRACE:x}","spans":[{spans}],"processes":{{
        "p1":{{"serviceName":"shop","tags":[]}},"p2":{{"serviceName":"stock"}}}}}}],"total":0}}"#
    )
}

/// As Jaeger's API writes a reference.
pub(crate) fn plain_reference(told: &Told) -> String {
    if told.parent == 0 {
        return String::new();
    }
    format!(r#"{{"refType":"CHILD_OF","traceID":"{TRACE:x}","spanID":"{:x}"}}"#, told.parent)
}

/// As Zipkin's API gives it.
pub(crate) fn zipkin() -> Vec<String> {
    let span = |told: &Told| {
        let parent = match told.parent {
            0 => String::new(),
            parent => format!(r#""parentId":"{parent:016x}","#),
        };
        let peer = told.peer.map_or(String::new(), |peer| {
            format!(r#""remoteEndpoint":{{"serviceName":"{peer}"}},"#)
        });
        format!(
            r#"{{"traceId":"{TRACE:032x}","id":"{:016x}",{parent}{peer}"kind":"{}",
            "timestamp":1796000000000000,"localEndpoint":{{"serviceName":"{}"}},"tags":{{{}}}}}"#,
            told.id,
            if told.client { "CLIENT" } else { "SERVER" },
            told.service,
            if told.error { r#""error":"timeout""# } else { "" },
        )
    };
    STORY.iter().map(span).collect()
}

/// As OTLP's JSON; `resources` and `scopes` are the names that a version has for these lists, `id`
/// writes an id.
pub(crate) fn otlp_json(
    resources: &str,
    scopes: &str,
    id: impl Fn(u128, usize) -> String,
) -> String {
    let mut all = Vec::new();
    for service in ["shop", "stock"] {
        let spans: Vec<_> = STORY
            .iter()
            .filter(|told| told.service == service)
            .map(|told| {
                let peer = told.peer.map_or(String::new(), |peer| {
                    format!(r#"{{"key":"db.system","value":{{"stringValue":"{peer}"}}}}"#)
                });
                let parent = match told.parent {
                    0 => String::new(),
                    parent => id(u128::from(parent), 8),
                };
                format!(
                    r#"{{"attributes":[{peer}],"traceId":"{}","spanId":"{}","parentSpanId":"{parent}",
                    "kind":{},"startTimeUnixNano":"1796000000000000000","status":{}}}"#,
                    id(TRACE, 16),
                    id(u128::from(told.id), 8),
                    if told.client { "3" } else { r#""SPAN_KIND_SERVER""# },
                    if told.error { r#"{"message":"x","code":2}"# } else { "{}" },
                )
            })
            .collect();
        all.push(format!(
            r#"{{"{scopes}":[{{"spans":[{}]}}],"resource":{{"attributes":[
            {{"key":"service.name","value":{{"stringValue":"{service}"}}}}]}}}}"#,
            spans.join(",")
        ));
    }
    format!(r#"{{"{resources}":[{}]}}"#, all.join(","))
}

/// As OTLP's protobuf: one message.
pub(crate) fn otlp_protobuf() -> Vec<u8> {
    let mut all = Vec::new();
    for service in ["shop", "stock"] {
        let mut scope = Vec::new();
        for told in STORY.iter().filter(|told| told.service == service) {
            let mut span = [
                field(1, &TRACE.to_be_bytes()),
                field(2, &told.id.to_be_bytes()),
                field(5, b"GET /"),
                vec![6 << 3, if told.client { 3 } else { 2 }],
                [vec![7 << 3 | 1], 1_796_000_000_000_000_000_u64.to_le_bytes().to_vec()].concat(),
                attribute(9, "db.statement", "SELECT 1"),
            ]
            .concat();
            if told.parent != 0 {
                span.extend(field(4, &told.parent.to_be_bytes()));
            }
            if let Some(peer) = told.peer {
                span.extend(attribute(9, "db.system", peer));
            }
            if told.error {
                span.extend(field(15, &[field(2, b"timeout"), vec![3 << 3, 2]].concat()));
            }
            scope.extend(field(2, &span));
        }
        let resource = field(1, &attribute(1, "service.name", service));
        all.extend(field(1, &[resource, field(2, &scope)].concat()));
    }
    all
}

/// A field of protobuf with a length.
pub(crate) fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        field.push(length as u8 | 0x80);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend(bytes);
    field
}

fn attribute(number: u8, key: &str, value: &str) -> Vec<u8> {
    let value = field(1, value.as_bytes());
    field(number, &[field(1, key.as_bytes()), field(2, &value)].concat())
}

/// As a table.
pub(crate) fn table() -> String {
    let mut table = "trace,span,parent,service,kind,failed,peer,start\n".to_owned();
    for told in &STORY {
        let _ = writeln!(
            table,
            "{TRACE:032x},{:016x},{:x},\"{}\",{},{},{},1796000000",
            told.id,
            told.parent,
            told.service,
            if told.client { "client" } else { "server" },
            told.error,
            told.peer.unwrap_or_default(),
        );
    }
    table
}
