//! What the server answers: series with a value each.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::client::AskError;

/// The series that an expression has at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// One for each series.
    pub samples: Vec<Sample>,
    /// What the server says beside it, as of parts of it that did not answer.
    pub warnings: Vec<String>,
}

/// A series and its value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// The labels that the expression left to it.
    pub labels: BTreeMap<String, String>,
    /// The value.
    pub value: f64,
    /// The moment that it has it, in seconds since 1970.
    pub at: f64,
}

impl Sample {
    /// The value of a label; a label that is not there is empty, as the server has it.
    #[must_use]
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }
}

#[derive(Deserialize)]
struct Document {
    status: String,
    data: Option<Data>,
    #[serde(rename = "errorType")]
    error_type: Option<String>,
    error: Option<String>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    result_type: String,
    #[serde(default)]
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    value: (f64, String),
}

impl Answer {
    /// Reads the body of an answer.
    pub(crate) fn read(body: &[u8]) -> Result<Self, AskError> {
        let document: Document = serde_json::from_slice(body)
            .map_err(|error| AskError::NotPrometheus { why: error.to_string() })?;
        if document.status != "success" {
            return Err(AskError::Refused {
                kind: document.error_type.unwrap_or(document.status),
                message: document.error.unwrap_or_default(),
            });
        }
        let data =
            document.data.ok_or_else(|| AskError::NotPrometheus { why: "no data".into() })?;
        if data.result_type != "vector" {
            let why = format!("a {} instead of a vector", data.result_type);
            return Err(AskError::NotPrometheus { why });
        }
        let samples = data.result.into_iter().map(|series| {
            let value = series.value.1.parse().map_err(|_| AskError::NotPrometheus {
                why: format!("`{}` is no number", series.value.1),
            })?;
            Ok(Sample { labels: series.metric, value, at: series.value.0 })
        });
        Ok(Self { samples: samples.collect::<Result<_, AskError>>()?, warnings: document.warnings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Prometheus 2.42 has answered.
    const VECTOR: &str = r#"{"status":"success","data":{"resultType":"vector","result":[
        {"metric":{"caller":"shop","callee":"stock"},"value":[1767175200,"12.5"]},
        {"metric":{},"value":[1767175200.781,"NaN"]}]},"warnings":["a store is away"]}"#;

    #[test]
    fn series_and_their_values() {
        let answer = Answer::read(VECTOR.as_bytes()).unwrap();
        let [one, two] = &*answer.samples else { panic!("{answer:?}") };
        assert_eq!((one.label("callee"), one.label("reporter"), one.value), ("stock", "", 12.5));
        assert_eq!((one.at, two.at), (1_767_175_200.0, 1_767_175_200.781));
        assert!(two.value.is_nan());
        assert_eq!(answer.warnings, ["a store is away"]);
    }

    #[test]
    fn answers_that_are_none() {
        for (body, expected) in [
            (
                r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#,
                "the server refuses the query: parse error (bad_data)",
            ),
            ("<html>", "the answer is not Prometheus's: expected value at line 1 column 1"),
            (r#"{"status":"success"}"#, "the answer is not Prometheus's: no data"),
            (
                r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
                "the answer is not Prometheus's: a matrix instead of a vector",
            ),
            (
                r#"{"status":"success","data":{"resultType":"vector","result":[
                    {"metric":{},"value":[1,"many"]}]}}"#,
                "the answer is not Prometheus's: `many` is no number",
            ),
        ] {
            let error = Answer::read(body.as_bytes()).unwrap_err();
            assert_eq!(error.to_string(), expected, "{body}");
        }
    }
}
