//! Parameters of a query, each named and checked.

use std::collections::BTreeMap;
use std::ops::Range;

use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;

use super::problem::Refusal;
use crate::clock::Millis;

/// The longest window: one day.
const WINDOW_MINUTES: u32 = 24 * 60;

/// The parameters that were given.
pub(crate) struct Parameters(BTreeMap<String, String>);

impl<S: Send + Sync> FromRequestParts<S> for Parameters {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(given)) => Ok(Self(given)),
            Err(error) => Err(Refusal::parameter(error.body_text())),
        }
    }
}

impl Parameters {
    /// Takes a parameter out.
    pub(crate) fn text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes one out that must be there.
    pub(crate) fn required(&mut self, name: &str) -> Result<String, Refusal> {
        self.text(name).ok_or_else(|| Refusal::parameter(format!("parameter {name} is missing")))
    }

    /// Takes a number out.
    pub(crate) fn number(
        &mut self,
        name: &str,
        allowed: std::ops::RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize, Refusal> {
        let Some(text) = self.text(name) else { return Ok(default) };
        text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
            let (least, most) = allowed.into_inner();
            Refusal::parameter(format!(
                "parameter {name} is {text:?}; allowed is {least} to {most}"
            ))
        })
    }

    /// Whether any of these was given.
    pub(crate) fn has<const N: usize>(&self, names: [&str; N]) -> bool {
        names.iter().any(|&name| self.0.contains_key(name))
    }

    /// Takes the minutes out that `from` and `to` name: an hour until now without them.
    pub(crate) fn window(&mut self, now: Millis) -> Result<Range<u32>, Refusal> {
        let mut time =
            |name, default: u64| self.number(name, 0..=usize::MAX >> 1, default as usize);
        let to = Millis(time("to", now.0)? as u64).minute().saturating_add(1);
        let from = Millis(time("from", now.0.saturating_sub(3_600_000))? as u64).minute();
        if from >= to || to - from > WINDOW_MINUTES + 1 {
            let detail = "parameters from and to are milliseconds since 1970, the first before the second, and at most a day apart";
            return Err(Refusal::parameter(detail));
        }
        Ok(from..to)
    }

    /// Nothing else was given: a mistyped name would be ignored otherwise.
    pub(crate) fn nothing_else(self) -> Result<(), Refusal> {
        match self.0.into_keys().next() {
            None => Ok(()),
            Some(name) => Err(Refusal::parameter(format!("there is no parameter {name:?} here"))),
        }
    }
}
