//! Overrides in a file: what `onus overrides apply` sends, and what the analysis watches.
//!
//! A file that cannot be meant changes nothing: what the last good one said holds until its end.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use onus_api::{Override, OverrideRequest, OverrideSource};
use serde::Deserialize;
use serde_saphyr::{Location, Spanned};

use crate::clock::Millis;
use crate::date;
use crate::file::ConfigError;
use crate::orders::{Change, ORDERS_MAX};
use crate::overrides::Overrides;

/// How often the file is looked at.
pub(crate) const LOOK: Duration = Duration::from_secs(2);
/// The longest file that is read.
const BYTES_MAX: u64 = 16 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverridesFile {
    overrides: Vec<OverrideEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct OverrideEntry {
    caller: Spanned<String>,
    #[serde(default)]
    caller_procedure: Option<Spanned<String>>,
    callee: Spanned<String>,
    #[serde(default)]
    procedure: Option<Spanned<String>>,
    class: Spanned<String>,
    owner: Spanned<String>,
    reason: Spanned<String>,
    #[serde(default)]
    ticket: Option<Spanned<String>>,
    expires: Spanned<String>,
}

impl OverrideEntry {
    fn request(&self, expires: u64) -> OverrideRequest {
        let of = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
        OverrideRequest {
            caller: self.caller.value.clone(),
            caller_procedure: of(&self.caller_procedure),
            callee: self.callee.value.clone(),
            procedure: of(&self.procedure),
            class: self.class.value.clone(),
            owner: self.owner.value.clone(),
            reason: self.reason.value.clone(),
            ticket: of(&self.ticket).unwrap_or_default(),
            for_seconds: None,
            expires: Some(expires),
        }
    }

    /// Where a field of the request stands.
    fn place(&self, field: &str) -> Location {
        let one = match field {
            "caller_procedure" => self.caller_procedure.as_ref(),
            "callee" => Some(&self.callee),
            "procedure" => self.procedure.as_ref(),
            "class" => Some(&self.class),
            "owner" => Some(&self.owner),
            "reason" => Some(&self.reason),
            "ticket" => self.ticket.as_ref(),
            "expires" => Some(&self.expires),
            _ => None,
        };
        one.unwrap_or(&self.caller).referenced
    }
}

/// Reads a file of overrides, YAML or JSON.
///
/// # Errors
///
/// What is wrong with it, and where.
pub fn read_overrides(path: &Path) -> Result<Vec<OverrideRequest>, ConfigError> {
    let read = |source| ConfigError::Read { path: path.to_owned(), source };
    let length = std::fs::metadata(path).map_err(read)?.len();
    if length > BYTES_MAX {
        let message = format!("it has {length} bytes; allowed is up to {BYTES_MAX}");
        return Err(ConfigError::Text { path: path.to_owned(), message });
    }
    parse(&std::fs::read_to_string(path).map_err(read)?, path, Millis::now())
}

fn parse(text: &str, path: &Path, now: Millis) -> Result<Vec<OverrideRequest>, ConfigError> {
    let file: OverridesFile =
        serde_saphyr::from_str(text).map_err(|error| ConfigError::of_parser(path, &error))?;
    let at = |place, message| ConfigError::at(path, place, message);
    if let Some(entry) = file.overrides.get(ORDERS_MAX) {
        let message = format!("there are more than {ORDERS_MAX} overrides");
        return Err(at(entry.place("caller"), message));
    }
    let mut seen = HashSet::new();
    let mut requests = Vec::new();
    for entry in &file.overrides {
        let expires = date::parse(&entry.expires.value).ok_or_else(|| {
            let typed = &entry.expires.value;
            let message =
                format!("expires is {typed:?}; allowed is a time such as 2030-12-31T18:00:00Z");
            at(entry.place("expires"), message)
        })?;
        let request = entry.request(expires.0);
        let it =
            Overrides::checked(request.clone(), OverrideSource::File, now).map_err(|wrong| {
                at(
                    entry.place(wrong.field),
                    wrong.message.replace("caller_procedure", "caller-procedure"),
                )
            })?;
        if !seen.insert(it.id.clone()) {
            let message = format!("a second override of {}", it.subject());
            return Err(at(entry.place("caller"), message));
        }
        requests.push(request);
    }
    Ok(requests)
}

/// The file that the analysis watches.
#[derive(Debug)]
pub(crate) struct Watched {
    path: PathBuf,
    /// Its length and when it was written, as it was last looked at.
    seen: Option<(u64, SystemTime)>,
    /// Whether it could not be read at the last look.
    broken: bool,
}

impl Watched {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, seen: None, broken: false }
    }

    /// What the file says; `None` where it is as it was at the last look.
    pub(crate) fn look(&mut self) -> Option<Result<Vec<OverrideRequest>, ConfigError>> {
        let seen = std::fs::metadata(&self.path);
        let seen = seen.and_then(|file| Ok((file.len(), file.modified()?))).ok();
        if seen == self.seen && (seen.is_some() || self.broken) {
            return None;
        }
        let read = read_overrides(&self.path);
        self.seen = seen;
        self.broken = read.is_err();
        Some(read)
    }

    /// Looks at it again at the next look, changed or not.
    pub(crate) fn forget(&mut self) {
        self.seen = None;
        self.broken = false;
    }
}

/// What makes the overrides of the file those that are asked for.
pub(crate) fn changes(
    overrides: &Overrides,
    asked: Vec<OverrideRequest>,
    now: Millis,
) -> Result<Vec<Change>, String> {
    let asked: Result<Vec<Override>, _> = asked
        .into_iter()
        .map(|request| Overrides::checked(request, OverrideSource::File, now))
        .collect();
    let asked = asked.map_err(|wrong| wrong.message)?;
    // One whose end has been put into the past is as one that is taken out.
    let kept: HashSet<&str> =
        asked.iter().filter(|it| it.expires > now.0).map(|it| &*it.id).collect();
    let dropped = overrides
        .iter()
        .filter(|it| it.source == OverrideSource::File && !kept.contains(&*it.id))
        .cloned()
        .map(Change::DropOverride);
    let mut changes: Vec<_> = dropped.collect();
    let news = asked.into_iter().filter(|it| {
        it.expires > now.0 && overrides.get(&it.id).is_none_or(|holds| !it.says_as(holds))
    });
    changes.extend(news.map(Change::SetOverride));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Millis = Millis(1_800_000_000_000);

    const GOOD: &str = "\
overrides:
- caller: shop/checkout
  callee: shop/recs
  class: fail-close
  owner: alice
  reason: a hidden need
  ticket: T-1
  expires: 2027-02-01T12:00:00Z
- caller: shop/checkout
  caller-procedure: GET /
  callee: shop/recs
  class: fail-open
  owner: bob
  reason: it may be left out
  expires: 2027-02-02
";

    #[test]
    fn a_mistake_is_told_with_its_place() {
        let parse = |text: &str| parse(text, Path::new("o.yaml"), NOW);
        let good = parse(GOOD).unwrap();
        assert_eq!(good.len(), 2);
        assert_eq!(good[1].caller_procedure.as_deref(), Some("GET /"));
        let json = r#"{"overrides": []}"#;
        assert_eq!(parse(json).unwrap(), []);
        for (from, to, says) in [
            ("class: fail-open", "class: fail-opened", "o.yaml:12:10: class is \"fail-opened\""),
            ("owner: alice", "owner: ''", "o.yaml:5:10: owner is \"\""),
            ("GET /", "\"\\u0007\"", "o.yaml:10:21: caller-procedure is"),
            ("2027-02-02", "tomorrow", "o.yaml:15:12: expires is \"tomorrow\"; allowed is"),
            ("2027-02-02", "2029-02-02", "o.yaml:15:12: expires is too late"),
            ("  caller-procedure: GET /\n", "", "o.yaml:9:11: a second override of"),
            ("  reason: it may be left out\n", "", "missing field"),
            ("ticket:", "tickets:", "o.yaml:7:3: unknown field"),
            ("overrides:", "override:", "o.yaml:1:1: unknown field"),
        ] {
            let error = parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(says), "{to:?}: {error}");
        }
    }

    #[test]
    fn only_what_differs_is_changed() {
        let mut overrides = Overrides::default();
        let parse = |text: &str| parse(text, Path::new("o.yaml"), NOW).unwrap();
        let mut apply = |text: &str, now| {
            let changes = changes(&overrides, parse(text), now).unwrap();
            changes
                .into_iter()
                .map(|change| match change {
                    Change::SetOverride(it) => {
                        overrides.set(it.clone());
                        format!("set {}", it.owner)
                    }
                    Change::DropOverride(it) => {
                        overrides.drop(&it.id);
                        format!("drop {}", it.owner)
                    }
                    Change::SetOrder(order) => format!("{order:?}"),
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(apply(GOOD, NOW), ["set alice", "set bob"]);
        assert_eq!(apply(GOOD, Millis(NOW.0 + 1)), Vec::<String>::new());
        assert_eq!(apply(&GOOD.replace("T-1", "T-2"), NOW), ["set alice"]);
        assert_eq!(
            apply(&GOOD.replace("2027-02-02", "2020-01-01"), NOW),
            ["drop bob", "set alice"]
        );
        assert_eq!(apply(&GOOD.replace("T-1", "T-2"), NOW), ["set alice", "set bob"]);
        let first = &GOOD[..GOOD.find("- caller: shop/checkout\n  caller-proc").unwrap()];
        assert_eq!(apply(&first.replace("T-1", "T-2"), NOW), ["drop bob"]);
        // What has ended is not set again.
        let late = Millis(NOW.0 + 30 * 86_400_000);
        assert_eq!(apply("overrides: []", late), ["drop alice"]);
        assert_eq!(apply(GOOD, late), Vec::<String>::new());
    }
}
