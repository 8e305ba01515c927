//! Classes of edges that operators have said, checked, and what follows from them for an edge.
//!
//! They come from two sources: requests to the API, and a watched file, which wins over them as a
//! file does for modes and shields (protocol §10).

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::{FixedState, RandomState};
use onus_api::{Class, Override, OverrideRequest, OverrideSource};
use onus_core::EdgeClass;

use crate::book::EdgeKey;
use crate::clock::Millis;
use crate::names::{Name, clean};
use crate::orders::{ORDERS_MAX, WORDS_MAX, words};

/// The longest that an override holds.
const SECONDS_MAX: u64 = 366 * 86_400;

/// All overrides that hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Overrides {
    by_id: HashMap<String, Override>,
    /// By caller and callee.
    by_pair: HashMap<(Name, Name), Vec<Word>, RandomState>,
}

/// An override as edges are asked for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    source: OverrideSource,
    caller_procedure: Option<Name>,
    procedure: Option<Name>,
    pub(crate) class: EdgeClass,
    pub(crate) expires: Millis,
}

/// What is wrong with an override that is asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// The field, as it is called in requests.
    pub(crate) field: &'static str,
    /// What it is, and what is allowed.
    pub(crate) message: String,
}

impl Overrides {
    /// Makes an override of what is asked for.
    pub(crate) fn checked(
        asked: OverrideRequest,
        source: OverrideSource,
        now: Millis,
    ) -> Result<Override, Wrong> {
        let class = Class::named(&asked.class).ok_or_else(|| {
            let class = &asked.class;
            wrong("class", &format!("is {class:?}; allowed is fail-close, fail-open or unknown"))
        })?;
        for (field, name) in [
            ("caller", Some(&asked.caller)),
            ("callee", Some(&asked.callee)),
            ("caller_procedure", asked.caller_procedure.as_ref()),
            ("procedure", asked.procedure.as_ref()),
        ] {
            if let Some(name) = name
                && (name.is_empty() || clean(name) != name)
            {
                let says = format!("is {name:?}; allowed is 1 to {WORDS_MAX} printable characters");
                return Err(wrong(field, &says));
            }
        }
        for (field, text) in [("owner", &asked.owner), ("reason", &asked.reason)] {
            words(field, text).map_err(|message| Wrong { field, message })?;
        }
        if clean(&asked.ticket) != asked.ticket {
            let ticket = &asked.ticket;
            let says = format!("is {ticket:?}; allowed is up to {WORDS_MAX} printable characters");
            return Err(wrong("ticket", &says));
        }
        let expires = expires(&asked, now)?;
        let names = [
            Some(&asked.caller),
            asked.caller_procedure.as_ref(),
            Some(&asked.callee),
            asked.procedure.as_ref(),
        ];
        let hasher = FixedState::with_seed(0);
        let id = match source {
            OverrideSource::Api => hasher.hash_one(names),
            OverrideSource::File => hasher.hash_one(("file", names)),
        };
        let OverrideRequest { caller, caller_procedure, callee, procedure, .. } = asked;
        let OverrideRequest { owner, reason, ticket, .. } = asked;
        Ok(Override {
            id: format!("{id:016x}"),
            source,
            caller,
            caller_procedure,
            callee,
            procedure,
            class,
            owner,
            reason,
            ticket,
            made: now.0,
            expires,
        })
    }

    /// Whether one of the API may be set beside those that hold.
    pub(crate) fn has_place_for(&self, it: &Override) -> Result<(), String> {
        if it.expires <= it.made {
            return Err(format!("expires is {}, which has passed", it.expires));
        }
        if self.by_id.len() >= ORDERS_MAX && !self.by_id.contains_key(&it.id) {
            return Err(format!("there are {ORDERS_MAX} overrides; drop one first"));
        }
        let covers = |file: &&Override| {
            let wider = |file: &Option<String>, own: &Option<String>| file.is_none() || file == own;
            file.source == OverrideSource::File
                && file.expires > it.made
                && (&file.caller, &file.callee) == (&it.caller, &it.callee)
                && wider(&file.caller_procedure, &it.caller_procedure)
                && wider(&file.procedure, &it.procedure)
        };
        match self.by_id.values().find(covers) {
            Some(file) => Err(format!(
                "the overrides file says {} of {}, and wins; change it there",
                file.class.as_str(),
                file.subject()
            )),
            None => Ok(()),
        }
    }

    pub(crate) fn set(&mut self, it: Override) {
        self.by_id.insert(it.id.clone(), it);
    }

    pub(crate) fn drop(&mut self, id: &str) {
        self.by_id.remove(id);
    }

    pub(crate) fn get(&self, id: &str) -> Option<&Override> {
        self.by_id.get(id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Override> {
        self.by_id.values()
    }

    /// Makes edges find what was set and dropped. One with a name that has no number is of no edge.
    pub(crate) fn index(&mut self, mut number: impl FnMut(&str) -> Option<Name>) {
        self.by_pair.clear();
        for it in self.by_id.values() {
            let mut all = |name: &Option<String>| match name.as_deref() {
                Some(name) => number(name).map(Some),
                None => Some(None),
            };
            let Some((caller_procedure, procedure)) =
                all(&it.caller_procedure).zip(all(&it.procedure))
            else {
                continue;
            };
            let Some(pair) = number(&it.caller).zip(number(&it.callee)) else { continue };
            let (class, expires) = (it.class.into(), Millis(it.expires));
            let word = Word { source: it.source, caller_procedure, procedure, class, expires };
            self.by_pair.entry(pair).or_default().push(word);
        }
    }

    /// What operators have said of an edge: the file before the API, then what names most of it.
    pub(crate) fn word(&self, key: EdgeKey, now: Millis) -> Option<&Word> {
        let words = self.by_pair.get(&(key.caller, key.callee))?;
        let fits = |said: Option<Name>, is: Name| said.is_none_or(|said| said == is);
        let strength = |word: &&Word| {
            let from_file = word.source == OverrideSource::File;
            (from_file, word.procedure.is_some(), word.caller_procedure.is_some())
        };
        words
            .iter()
            .filter(|word| word.expires > now)
            .filter(|word| {
                fits(word.caller_procedure, key.caller_procedure)
                    && fits(word.procedure, key.procedure)
            })
            .max_by_key(strength)
    }
}

fn wrong(field: &'static str, says: &str) -> Wrong {
    Wrong { field, message: format!("{field} {says}") }
}

fn expires(asked: &OverrideRequest, now: Millis) -> Result<u64, Wrong> {
    let most = now.0.saturating_add(SECONDS_MAX * 1000);
    match (asked.for_seconds, asked.expires) {
        (Some(seconds @ 1..=SECONDS_MAX), None) => Ok(now.0.saturating_add(seconds * 1000)),
        (Some(seconds), None) => {
            let says = format!("is {seconds}; allowed is 1 to {SECONDS_MAX}, which is 366 days");
            Err(wrong("for_seconds", &says))
        }
        (None, Some(expires)) if expires <= most => Ok(expires),
        (None, Some(_)) => Err(wrong("expires", "is too late; allowed is up to 366 days from now")),
        (None, None) | (Some(_), Some(_)) => {
            Err(wrong("expires", "and for_seconds; one of them is needed"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    const NOW: Millis = Millis(1_000_000);

    fn asked(
        caller_procedure: Option<&str>,
        procedure: Option<&str>,
        class: &str,
    ) -> OverrideRequest {
        OverrideRequest {
            caller: "checkout".to_owned(),
            caller_procedure: caller_procedure.map(str::to_owned),
            callee: "recs".to_owned(),
            procedure: procedure.map(str::to_owned),
            class: class.to_owned(),
            owner: "alice".to_owned(),
            reason: "known".to_owned(),
            ticket: String::new(),
            for_seconds: Some(60),
            expires: None,
        }
    }

    #[test]
    fn the_file_wins_then_the_word_that_names_most_until_it_expires() {
        use OverrideSource::{Api, File};
        let mut overrides = Overrides::default();
        let mut names = Names::default();
        for (source, request) in [
            (Api, asked(None, None, "fail-close")),
            (Api, asked(Some("GET /"), None, "unknown")),
            (Api, asked(None, Some("/recs"), "fail-open")),
            (File, asked(None, Some("/filed"), "fail-close")),
            (Api, asked(Some("GET /"), Some("/filed"), "fail-open")),
        ] {
            overrides.set(Overrides::checked(request, source, NOW).unwrap());
        }
        overrides.index(|name| Some(names.intern(name)));
        let mut key = |caller_procedure: &str, procedure: &str| EdgeKey {
            caller: names.intern("checkout"),
            caller_procedure: names.intern(caller_procedure),
            callee: names.intern("recs"),
            procedure: names.intern(procedure),
        };
        for (caller_procedure, procedure, class) in [
            ("POST /", "/list", EdgeClass::FailClose),
            ("GET /", "/list", EdgeClass::Unknown),
            ("POST /", "/recs", EdgeClass::FailOpen),
            ("GET /", "/recs", EdgeClass::FailOpen),
            ("GET /", "/filed", EdgeClass::FailClose),
        ] {
            let key = key(caller_procedure, procedure);
            let word = |now| overrides.word(key, now).map(|word| word.class);
            assert_eq!(word(NOW), Some(class), "{key:?}");
            assert_eq!(word(Millis(NOW.0 + 59_999)), Some(class), "{key:?}");
            assert_eq!(word(Millis(NOW.0 + 60_000)), None, "{key:?}");
        }
        let beaten = Overrides::checked(asked(None, Some("/filed"), "unknown"), Api, NOW).unwrap();
        let why = overrides.has_place_for(&beaten).unwrap_err();
        assert!(
            why.contains("says fail-close of checkout \u{2192} recs /filed, and wins"),
            "{why}"
        );
        let mut wider = Overrides::checked(asked(None, None, "unknown"), Api, NOW).unwrap();
        assert_eq!(overrides.has_place_for(&wider), Ok(()));
        wider.expires = NOW.0;
        let why = overrides.has_place_for(&wider).unwrap_err();
        assert!(why.ends_with("which has passed"), "{why}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_what_would_be_right() {
        let good = asked(None, None, "fail-open");
        let with = |change: fn(&mut OverrideRequest)| {
            let mut request = good.clone();
            change(&mut request);
            request
        };
        for (request, field, says) in [
            (with(|it| it.class = "open".into()), "class", "class is \"open\"; allowed is"),
            (with(|it| it.caller = String::new()), "caller", "caller is \"\""),
            (with(|it| it.callee = "a\nb".into()), "callee", "callee is"),
            (with(|it| it.procedure = Some(String::new())), "procedure", "procedure is"),
            (with(|it| it.owner = " ".into()), "owner", "owner is"),
            (with(|it| it.reason = String::new()), "reason", "reason is"),
            (with(|it| it.ticket = "\u{1b}".into()), "ticket", "ticket is"),
            (with(|it| it.for_seconds = Some(0)), "for_seconds", "for_seconds is 0; allowed is 1"),
            (with(|it| it.for_seconds = None), "expires", "expires and for_seconds; one of them"),
            (with(|it| it.expires = Some(1)), "expires", "expires and for_seconds; one of them"),
            (
                with(|it| (it.for_seconds, it.expires) = (None, Some(u64::MAX))),
                "expires",
                "expires is too late",
            ),
        ] {
            let error = Overrides::checked(request, OverrideSource::Api, NOW).unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.message.starts_with(says), "{error:?}");
        }
    }
}
