//! Jaeger's `/api/dependencies`.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use super::{EdgeList, ListedEdge, Place, calls, name, without_place};

/// Reads the list of dependencies, which may be the `data` of an object. Where the text breaks off,
/// the edges before it stay.
pub(super) fn read(text: &str) -> EdgeList {
    let mut list = EdgeList::default();
    let mut json = serde_json::Deserializer::from_str(text);
    let answer = Answer { list: &mut list }.deserialize(&mut json).and_then(|()| json.end());
    if let Err(error) = answer {
        let at = Place::Column(error.line(), error.column());
        list.refuse(at, without_place(&error.to_string()));
    }
    list
}

/// A list of edges, or an object whose `data` is one.
struct Answer<'l> {
    list: &'l mut EdgeList,
}

impl<'de> DeserializeSeed<'de> for Answer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Answer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of dependencies")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "data" {
                map.next_value_seed(Answer { list: &mut *self.list })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut edges: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(value) = edges.next_element::<Value>()? {
            number += 1;
            match edge(&value) {
                Some(edge) => self.list.add(Place::Edge(number), edge),
                None => self.list.refuse(
                    Place::Edge(number),
                    "needs the names `parent` and `child`, and a number of calls as `callCount`"
                        .to_owned(),
                ),
            }
        }
        Ok(())
    }

    /// Jaeger's answer without any dependency.
    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

fn edge(value: &Value) -> Option<ListedEdge> {
    let service = |key| value.get(key)?.as_str().filter(|text| !text.is_empty()).map(name);
    Some(ListedEdge {
        caller: service("parent")?,
        callee: service("child")?,
        calls: match value.get("callCount") {
            None => None,
            Some(count) => Some(count.as_f64().and_then(calls)?),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGE: &str = r#"{"parent": "a", "child": "b", "callCount": 3}"#;

    #[test]
    fn both_forms_are_read() {
        let expected =
            ListedEdge { caller: "a".to_owned(), callee: "b".to_owned(), calls: Some(3.0) };
        for text in [format!("[{EDGE}]"), format!("{{\"data\": [{EDGE}], \"total\": [0]}}")] {
            let list = read(&text);
            assert_eq!(
                (&list.edges[..], list.refused),
                (&[expected.clone()][..], vec![]),
                "{text}"
            );
        }
        assert_eq!(read(r#"{"data": null}"#), EdgeList::default());
    }

    #[test]
    fn what_is_no_edge_is_refused_and_the_rest_read() {
        let text = format!(
            r#"[{EDGE}, 7, {{"parent": "a"}}, {{"parent": "a", "child": "b",
            "callCount": -1}}, {EDGE}]"#
        );
        let list = read(&text);
        assert_eq!((list.edges.len(), list.refused_in_all), (2, 3));
        assert_eq!(
            list.refused[0].to_string(),
            "edge 2: needs the names `parent` and `child`, and a number of calls as `callCount`"
        );
    }

    #[test]
    fn where_the_text_breaks_off_the_edges_before_stay() {
        for (end, complaint) in [
            ("", "line 2 column 0: EOF while parsing a list"),
            (", {\"parent\": ", "line 2 column 13: EOF while parsing a value"),
            ("] x", "line 2 column 3: trailing characters"),
        ] {
            let list = read(&format!("[{EDGE}\n{end}"));
            assert_eq!(list.edges.len(), 1, "{end}");
            assert_eq!(list.refused[0].to_string(), complaint);
        }
        let nested = "[".repeat(100_000);
        assert!(read(&nested).refused[0].why.contains("recursion limit"));
    }
}
