//! What of JSON Schema the documents of the APIs use, for answers that are checked against them.

use serde_json::Value;

/// What is wrong with a value by a schema of this document; a field that the schema does not name
/// is wrong as well.
pub(crate) fn wrong(document: &Value, schema: &Value, value: &Value, at: &str) -> Vec<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let Some(named) = document.pointer(name.trim_start_matches('#')) else {
            return vec![format!("{at}: there is no {name}")];
        };
        return wrong(document, named, value, at);
    }
    for way in ["anyOf", "oneOf"] {
        if let Some(ways) = schema[way].as_array() {
            let all: Vec<_> = ways.iter().map(|it| wrong(document, it, value, at)).collect();
            let fits = all.iter().any(Vec::is_empty);
            return if fits { Vec::new() } else { all.concat() };
        }
    }
    let mut found = Vec::new();
    if let Some(only) = schema.get("const").filter(|only| *only != value) {
        found.push(format!("{at}: {value} is not {only}"));
    }
    if let Some(some) = schema["enum"].as_array().filter(|some| !some.contains(value)) {
        found.push(format!("{at}: {value} is none of {some:?}"));
    }
    if !is_of(&schema["type"], value) {
        found.push(format!("{at}: {value} is no {}", schema["type"]));
    }
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        found.push(format!("{at}: {number} is less than {least}"));
    }
    if let Some(items) = value.as_array() {
        for (place, item) in items.iter().enumerate() {
            let of_place = schema["prefixItems"].get(place).or_else(|| schema.get("items"));
            if let Some(of_item) = of_place.filter(|schema| schema.is_object()) {
                found.extend(wrong(document, of_item, item, &format!("{at}/{place}")));
            }
        }
    }
    if let (Some(fields), Some(properties)) = (value.as_object(), schema["properties"].as_object())
    {
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap_or_default()) {
                found.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, field) in fields {
            match properties.get(name) {
                Some(schema) => {
                    found.extend(wrong(document, schema, field, &format!("{at}/{name}")));
                }
                None => found.push(format!("{at}: {name} is not in the document")),
            }
        }
    }
    found
}

fn is_of(kind: &Value, value: &Value) -> bool {
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("a schema of the type {other}"),
    };
    match kind {
        Value::Null => true,
        Value::String(kind) => is(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(is),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => panic!("a type of {kind}"),
    }
}

#[test]
fn what_is_not_in_the_document_is_found() {
    let document = serde_json::json!({"components": {"schemas": {"Count": {
        "type": "object", "required": ["n"],
        "properties": {"n": {"type": "integer", "minimum": 0}, "of": {"type": ["string", "null"]},
                       "both": {"type": "array", "prefixItems": [{"type": "number"}, {"enum": ["a"]}]}},
    }}}});
    let schema = serde_json::json!({"$ref": "#/components/schemas/Count"});
    for (value, says) in [
        (serde_json::json!({"n": 1, "of": null, "both": [1.5, "a"]}), ""),
        (serde_json::json!({}), "\"n\" is missing"),
        (serde_json::json!({"n": -1}), "-1 is less than 0"),
        (serde_json::json!({"n": 1.5}), "1.5 is no \"integer\""),
        (serde_json::json!({"n": 1, "of": 1}), "1 is no"),
        (serde_json::json!({"n": 1, "both": ["x", "b"]}), "\"x\" is no"),
        (serde_json::json!({"n": 1, "both": [1, "b"]}), "\"b\" is none of"),
        (serde_json::json!({"n": 1, "more": 1}), "more is not in the document"),
        (serde_json::json!([]), "[] is no"),
    ] {
        let found = wrong(&document, &schema, &value, "").join("; ");
        assert_eq!(found.is_empty(), says.is_empty(), "{value}: {found}");
        assert!(found.contains(says), "{value}: {found}");
    }
}
