//! The configuration as people would type it: without defaults, and with the place where each
//! policy was found.

use std::collections::BTreeMap;

use onus_retry_config::Place;
use serde::Serialize;
use serde_json::Value;

use super::callees::{Callee, Found};
use crate::cli::{ImportOptions, MadeBy};

/// Writes the file.
pub(super) fn write(options: &ImportOptions, callees: &BTreeMap<String, Callee>) -> String {
    let mut text = "# Written by `onus config import`. Check addresses, and what is said below of \
                    places.\n"
        .to_owned();
    text.push_str(match options.made_by {
        MadeBy::Onus => "# The sidecar makes these retries: take them out where they were.\n",
        MadeBy::Below => "# Others make these retries; the sidecar makes none and counts them.\n",
    });
    text.push_str(&format!("service: {}\n", plain(&options.service)));
    text.push_str(&format!("inbound: {{app: {}}}\n", flow(&Value::from(&*options.app))));
    if callees.is_empty() {
        text.push_str("callees: {}\n");
        return text;
    }
    text.push_str("callees:\n");
    for (name, callee) in callees {
        text.push_str(&format!("  {}:\n", plain(name)));
        let assumed = if callee.port.is_none() { "  # the port is assumed" } else { "" };
        text.push_str(&format!("    address: {}{assumed}\n", plain(&callee.address(options.port))));
        if !callee.hosts.is_empty() {
            text.push_str(&format!("    hosts: {}\n", written(&callee.hosts)));
        }
        if !callee.routes.is_empty() {
            text.push_str(&format!("    routes: {}\n", written(&callee.routes)));
        }
        match &callee.declared {
            Some(found) if found.says.attempts.is_some_and(|attempts| attempts < 2) => {
                places(&mut text, "    ", found, ": no retries");
            }
            Some(found) => entry(&mut text, "    ", "retries", found),
            None => {}
        }
        match &callee.all {
            Some(found) if found.says.attempts < 2 => {
                places(&mut text, "    ", found, ": no retries");
            }
            Some(found) => entry(&mut text, "    ", "retry", found),
            None => {}
        }
        if !callee.procedures.is_empty() {
            text.push_str("    procedures:\n");
        }
        let mut said: &[Place] = &[];
        for (procedure, found) in &callee.procedures {
            // One rule may have many procedures.
            if found.places != said {
                places(&mut text, "      ", found, "");
                said = &found.places;
            }
            text.push_str(&format!("      {}: {}\n", plain(procedure), written(&found.says)));
        }
    }
    text
}

fn entry<T: Serialize>(text: &mut String, indent: &str, key: &str, found: &Found<T>) {
    places(text, indent, found, "");
    text.push_str(&format!("{indent}{key}: {}\n", written(&found.says)));
}

fn places<T>(text: &mut String, indent: &str, found: &Found<T>, more: &str) {
    let more = if found.by_default { ": what the mesh does by itself" } else { more };
    for place in &found.places {
        let place = place.to_string().replace(char::is_control, " ");
        text.push_str(&format!("{indent}# {place}{more}\n"));
    }
}

/// A value in one line, without what is at its default.
fn written<T: Serialize>(value: &T) -> String {
    // What is written here is text, numbers, lists and maps.
    flow(&serde_json::to_value(value).unwrap_or_default())
}

fn flow(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let said = |value: &Value| !matches!(value, Value::Null | Value::Bool(false));
            let mut fields: Vec<_> = fields.iter().filter(|(_, value)| said(value)).collect();
            let place = |key: &str| FIRST.iter().position(|first| *first == key);
            fields.sort_by_key(|(key, _)| place(key).unwrap_or(FIRST.len()));
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(key, value)| format!("{}: {}", plain(key), flow(value)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(flow).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => plain(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

/// A text without quotes, where YAML reads it as one.
fn plain(text: &str) -> String {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-: ".contains(&byte);
    let begins = |byte: u8| byte.is_ascii_alphabetic() || byte == b'/';
    let is_name = text.bytes().next().is_some_and(begins)
        && text.bytes().all(is_word)
        // A colon before a space makes a key.
        && !(text.contains(':') && text.contains(' '))
        && !text.ends_with([' ', ':'])
        && !WORDS.iter().any(|word| word.eq_ignore_ascii_case(text));
    let unit = text.trim_start_matches(|at: char| at.is_ascii_digit());
    let is_time = ["ms", "s", "m", "h"].contains(&unit) && unit.len() < text.len();
    // A text of JSON is one of YAML.
    if is_name || is_time { text.to_owned() } else { Value::from(text).to_string() }
}

/// What is read first.
const FIRST: [&str; 5] = ["made-by", "like", "attempts", "percent", "errors"];

/// What some reader of YAML takes for something else.
const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_where_they_would_be_something_else() {
        for (text, expected) in [
            ("reviews.shop", "reviews.shop"),
            ("GET /a", "GET /a"),
            ("/shop.Cart/Add", "/shop.Cart/Add"),
            ("a:80", "a:80"),
            ("a: 80", "\"a: 80\""),
            ("a:", "\"a:\""),
            ("127.0.0.1:80", "\"127.0.0.1:80\""),
            ("no", "\"no\""),
            ("25ms", "25ms"),
            ("1e5", "\"1e5\""),
            ("7", "\"7\""),
            ("/v2/{*rest}", "\"/v2/{*rest}\""),
            ("- x", "\"- x\""),
            ("a\n#", "\"a\\n#\""),
            ("", "\"\""),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
