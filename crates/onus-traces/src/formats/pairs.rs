//! Lists of `{"key": …, "value": …}`, as Jaeger writes tags and OTLP writes attributes.

use crate::json::{Broken, Json, Turn};

/// Reads a list of pairs and tells `said` of each whose key `of` knows.
///
/// A value is a scalar, or an object of one scalar (`{"stringValue": "x"}`); others are passed
/// over. `value` is room for a value that stands before its key.
pub(crate) fn pairs<K: Copy>(
    json: &mut Json<'_>,
    value: &mut Vec<u8>,
    of: impl Fn(&[u8]) -> Option<K>,
    mut said: impl FnMut(K, &[u8]),
) -> Result<(), Broken> {
    if !json.array()? {
        return Ok(());
    }
    let mut elements = Turn::default();
    while json.element(&mut elements)? {
        if !json.object()? {
            continue;
        }
        let mut key = None;
        let mut has_value = false;
        let mut members = Turn::default();
        while let Some(member) = json.key(&mut members, Member::of)? {
            match member {
                Member::Key => key = json.string(&of)?,
                // Most keys say nothing, and most stand before their value.
                Member::Value if matches!(key, Some(None)) => json.skip()?,
                Member::Value => {
                    value.clear();
                    has_value = read(json, value)?;
                }
                Member::Other => json.skip()?,
            }
        }
        if let Some(Some(key)) = key
            && has_value
        {
            said(key, value);
        }
    }
    Ok(())
}

fn read(json: &mut Json<'_>, value: &mut Vec<u8>) -> Result<bool, Broken> {
    if json.peek()? != b'{' {
        return Ok(json.scalar(|text| value.extend_from_slice(text))?.is_some());
    }
    json.object()?;
    let mut has_value = false;
    let mut turn = Turn::default();
    while json.key(&mut turn, |_| ())?.is_some() {
        let text = json.scalar(|text| {
            value.clear();
            value.extend_from_slice(text);
        })?;
        has_value |= text.is_some();
    }
    Ok(has_value)
}

#[derive(Clone, Copy)]
enum Member {
    Key,
    Value,
    Other,
}

impl Member {
    #[inline]
    fn of(key: &[u8]) -> Self {
        match key {
            b"key" => Self::Key,
            b"value" => Self::Value,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Window;

    #[test]
    fn keys_and_values_in_any_order_and_shape() {
        let text = r#"[
            {"key": "a", "type": "bool", "value": true},
            {"value": {"intValue": "7"}, "key": "a"},
            {"key": "b", "value": [1]},
            {"key": "a", "value": {"arrayValue": {"values": []}}},
            {"key": "a"}, 5, {"value": 1},
            {"key": "a", "value": {"stringValue": "x"}}
        ]"#;
        let mut json = Json::new(Window::new(Box::new(text.as_bytes())));
        let mut found = Vec::new();
        let of = |key: &[u8]| (key == b"a").then_some(());
        pairs(&mut json, &mut Vec::new(), of, |(), value| {
            found.push(String::from_utf8_lossy(value).into_owned());
        })
        .unwrap();
        assert_eq!(found, ["true", "7", "x"]);
        assert_eq!(json.peek_or_end(), Ok(None));
    }
}
