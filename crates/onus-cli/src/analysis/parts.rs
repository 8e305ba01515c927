//! Figures of a whole mesh where several analyses share its callers: each has a part.

use onus_api::{EdgePage, GraphPage, Order, Orders, Snapshot, Window};
use serde::de::DeserializeOwned;

use super::Client;
use crate::cli::Server;

/// Figures of the callers that one analysis has.
pub(crate) trait Part: DeserializeOwned {
    /// Where the other callers are.
    fn elsewhere(&self) -> &[String];
    /// What is not in it.
    fn missing(&mut self) -> &mut Vec<String>;
    /// Takes in another part.
    fn add(&mut self, other: Self);
}

/// All parts as one, by the analysis that is asked and those that it names. What cannot be had is
/// said in it, and not taken for nothing.
pub(crate) async fn whole<T: Part>(
    server: &Server,
    ask: impl AsyncFn(&Client) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let mut all = ask(&Client::new(server)?).await?;
    for address in all.elsewhere().to_vec() {
        let part = async { ask(&Client::to(server, &address)?).await };
        match part.await {
            Ok(part) => all.add(part),
            Err(error) => all.missing().push(format!("{UNREACHED} {address}: {error:#}")),
        }
    }
    all.missing().sort();
    all.missing().dedup();
    Ok(all)
}

/// How a gap begins that is a whole analysis.
pub(crate) const UNREACHED: &str = "the callers of the analysis at";

/// Tells people why a table is empty.
pub(crate) fn nothing(why: &str) {
    anstream::eprintln!("note: {why}; services report within 10 s, see docs/analysis.md");
}

/// Tells people beside the figures what is not in them.
pub(crate) fn tell(missing: &[String]) {
    for what in missing {
        anstream::eprintln!("note: not in these figures: {what}");
    }
}

impl Part for EdgePage {
    fn elsewhere(&self) -> &[String] {
        &self.elsewhere
    }

    fn missing(&mut self) -> &mut Vec<String> {
        &mut self.missing
    }

    fn add(&mut self, other: Self) {
        self.edges.extend(other.edges);
        self.missing.extend(other.missing);
    }
}

impl Part for Snapshot {
    fn elsewhere(&self) -> &[String] {
        &self.elsewhere
    }

    fn missing(&mut self) -> &mut Vec<String> {
        &mut self.missing
    }

    fn add(&mut self, other: Self) {
        *self = std::mem::take(self).plus(other);
    }
}

impl Part for GraphPage {
    fn elsewhere(&self) -> &[String] {
        &self.elsewhere
    }

    fn missing(&mut self) -> &mut Vec<String> {
        &mut self.missing
    }

    fn add(&mut self, other: Self) {
        for (name, coverage) in other.services {
            match self.services.iter_mut().find(|(known, _)| *known == name) {
                // Who is only called there is known by the analysis that has its own calls.
                Some((_, known)) if known == "non-cooperative" => *known = coverage,
                Some(_) => {}
                None => self.services.push((name, coverage)),
            }
        }
        self.edges.extend(other.edges);
        self.missing.extend(other.missing);
    }
}

impl Part for Window {
    fn elsewhere(&self) -> &[String] {
        &self.elsewhere
    }

    fn missing(&mut self) -> &mut Vec<String> {
        &mut self.missing
    }

    fn add(&mut self, other: Self) {
        for minute in other.minutes {
            match self.minutes.iter_mut().find(|it| it.at == minute.at) {
                Some(own) => {
                    own.calls += minute.calls;
                    own.failed += minute.failed;
                    own.retries += minute.retries;
                    own.suppressed += minute.suppressed;
                }
                None => self.minutes.push(minute),
            }
        }
        self.minutes.sort_by_key(|it| it.at);
        self.pairs.extend(other.pairs);
        self.missing.extend(other.missing);
    }
}

impl Part for Orders {
    fn elsewhere(&self) -> &[String] {
        &self.elsewhere
    }

    fn missing(&mut self) -> &mut Vec<String> {
        &mut self.missing
    }

    fn add(&mut self, other: Self) {
        for order in other.orders {
            // What is for all services is said at each analysis.
            let known =
                |it: &Order| it.service == "*" && Order { made: it.made, ..order.clone() } == *it;
            if !self.orders.iter().any(known) {
                self.orders.push(order);
            }
        }
        self.overrides.extend(other.overrides);
        self.missing.extend(other.missing);
    }
}

#[cfg(test)]
mod tests {
    use onus_api::{Minute, WindowPair};

    use super::*;

    #[test]
    fn a_service_is_known_by_the_analysis_that_has_its_calls() {
        let page = |services: [(&str, &str); 2]| GraphPage {
            services: services.map(|(name, is)| (name.to_owned(), is.to_owned())).into(),
            ..GraphPage::default()
        };
        let mut all = page([("a", "enforcing"), ("b", "non-cooperative")]);
        all.add(page([("b", "observing"), ("c", "non-cooperative")]));
        all.add(page([("a", "non-cooperative"), ("c", "context-lost")]));
        let found: Vec<_> =
            all.services.iter().map(|(name, is)| (name.as_str(), is.as_str())).collect();
        assert_eq!(found, [("a", "enforcing"), ("b", "observing"), ("c", "context-lost")]);
    }

    #[test]
    fn a_minute_of_two_analyses_is_one() {
        let window = |minutes: &[(u64, u64)], caller: &str| Window {
            minutes: minutes
                .iter()
                .map(|&(at, failed)| Minute { at, failed, ..Minute::default() })
                .collect(),
            pairs: vec![WindowPair { caller: caller.to_owned(), ..WindowPair::default() }],
            missing: vec![caller.to_owned()],
            ..Window::default()
        };
        let mut all = window(&[(120_000, 3)], "a");
        all.add(window(&[(60_000, 1), (120_000, 4)], "b"));
        let minutes: Vec<_> = all.minutes.iter().map(|it| (it.at, it.failed)).collect();
        assert_eq!(minutes, [(60_000, 1), (120_000, 7)]);
        assert_eq!((all.pairs.len(), all.missing.len()), (2, 2));
    }
}
