//! A text where one is enough, and a list where there are several.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};

/// One text, or several.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct OneOrMany(pub Vec<String>);

impl JsonSchema for OneOrMany {
    fn schema_name() -> Cow<'static, str> {
        "OneOrMany".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]
        })
    }
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor)
    }
}

struct OneOrManyVisitor;

impl<'de> Visitor<'de> for OneOrManyVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name with a port, or a list of addresses")
    }

    fn visit_str<E>(self, text: &str) -> Result<OneOrMany, E> {
        Ok(OneOrMany(vec![text.to_owned()]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut texts: A) -> Result<OneOrMany, A::Error> {
        let mut all = Vec::new();
        while let Some(text) = texts.next_element()? {
            all.push(text);
        }
        Ok(OneOrMany(all))
    }
}
