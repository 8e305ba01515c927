//! What operators have said, checked, and what follows from it for an edge and a service.

use std::collections::HashMap;

use foldhash::fast::{FixedState, RandomState};
use onus_api::{Class, Order, OrderRequest, Override, OverrideRequest, SwitchOrder};
use onus_core::{EdgeClass, Share};
use std::hash::BuildHasher;

use crate::book::EdgeKey;
use crate::clock::Millis;
use crate::names::{Name, Names, clean};

/// The most overrides, and the most services with an order.
const ORDERS_MAX: usize = 10_000;
const WORDS_MAX: usize = 256;
const SHIELD_SECONDS_MAX: u64 = 86_400;
const OVERRIDE_SECONDS_MAX: u64 = 366 * 86_400;

/// All that operators have said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    overrides: HashMap<String, Override>,
    /// Overrides by caller and callee.
    by_pair: HashMap<(Name, Name), Vec<Word>, RandomState>,
    orders: HashMap<String, Order>,
    /// Rises when something is said for all services.
    pub(crate) epoch: u64,
}

/// An override as edges are asked for it.
#[derive(Clone, Copy, Debug)]
struct Word {
    caller_procedure: Option<Name>,
    procedure: Option<Name>,
    class: EdgeClass,
    expires: Millis,
}

/// Something that operators change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    SetOverride(Override),
    DropOverride(String),
    SetOrder(Order),
}

impl Change {
    /// For the audit log: what is done, of what, in words.
    pub(crate) fn told(&self) -> (&'static str, String, String) {
        match self {
            Self::SetOverride(it) => {
                let Override { class, owner, reason, ticket, expires, .. } = it;
                let class = class.as_str();
                let detail =
                    format!("{class} until {expires}; owner {owner}; ticket {ticket}; {reason}");
                ("override-set", it.subject(), detail)
            }
            Self::DropOverride(id) => ("override-dropped", id.clone(), String::new()),
            Self::SetOrder(order) => {
                let Order { service, mode, mode_until, shield_until, who, why, made: _ } = order;
                let mode = mode.as_deref().unwrap_or("none");
                let detail = format!(
                    "mode {mode} until {mode_until:?}; shield until {shield_until:?}; {who}; {why}"
                );
                ("order-set", service.clone(), detail)
            }
        }
    }
}

impl Said {
    /// Makes a change of what is asked for.
    pub(crate) fn override_of(
        &self,
        asked: OverrideRequest,
        now: Millis,
    ) -> Result<Change, String> {
        let OverrideRequest {
            caller,
            caller_procedure,
            callee,
            procedure,
            class,
            owner,
            reason,
            ticket,
            for_seconds,
        } = asked;
        for (field, name) in [
            ("caller", Some(&caller)),
            ("callee", Some(&callee)),
            ("caller_procedure", caller_procedure.as_ref()),
            ("procedure", procedure.as_ref()),
        ] {
            if name.is_some_and(|name| name.is_empty() || clean(name) != name) {
                return Err(format!(
                    "{field} is {name:?}; allowed is 1 to 256 printable characters"
                ));
            }
        }
        let class = Class::named(&class).ok_or_else(|| {
            format!("class is {class:?}; allowed is fail-close, fail-open or unknown")
        })?;
        words("owner", &owner)?;
        words("reason", &reason)?;
        if clean(&ticket) != ticket {
            return Err(format!(
                "ticket is {ticket:?}; allowed is up to {WORDS_MAX} printable characters"
            ));
        }
        if !(1..=OVERRIDE_SECONDS_MAX).contains(&for_seconds) {
            return Err(format!(
                "for_seconds is {for_seconds}; allowed is 1 to {OVERRIDE_SECONDS_MAX}"
            ));
        }
        let names = [Some(&caller), caller_procedure.as_ref(), Some(&callee), procedure.as_ref()];
        let id = format!("{:016x}", FixedState::with_seed(0).hash_one(names));
        if self.overrides.len() >= ORDERS_MAX && !self.overrides.contains_key(&id) {
            return Err(format!("there are {ORDERS_MAX} overrides; drop one first"));
        }
        let expires = now.0.saturating_add(for_seconds * 1000);
        Ok(Change::SetOverride(Override {
            id,
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
        }))
    }

    /// Makes a change of what is asked for; what the request does not name stays.
    pub(crate) fn order_of(&self, asked: OrderRequest, now: Millis) -> Result<Change, String> {
        let OrderRequest { service, mode, mode_seconds, shield_seconds, who, why } = asked;
        if service.is_empty() || clean(&service) != service {
            return Err(format!("service is {service:?}; allowed is a name, or * for all"));
        }
        words("who", &who)?;
        words("why", &why)?;
        let mut order = self.orders.get(&service).cloned().unwrap_or_default();
        if self.orders.len() >= ORDERS_MAX && order.service.is_empty() {
            return Err(format!("there are orders for {ORDERS_MAX} services"));
        }
        match mode.as_deref() {
            None => {}
            Some("none") => (order.mode, order.mode_until) = (None, None),
            Some(text) if is_mode(text) => {
                order.mode_until =
                    mode_seconds.map(|seconds| now.0.saturating_add(seconds.saturating_mul(1000)));
                order.mode = mode;
            }
            Some(text) => {
                return Err(format!(
                    "mode is {text:?}; allowed is off, observe, enforce, enforce with a share such as enforce 25%, or none"
                ));
            }
        }
        match shield_seconds {
            None => {}
            Some(0) => order.shield_until = Some(0),
            Some(seconds @ 1..=SHIELD_SECONDS_MAX) => {
                order.shield_until = Some(now.0.saturating_add(seconds * 1000));
            }
            Some(seconds) => {
                return Err(format!(
                    "shield_seconds is {seconds}; allowed is up to {SHIELD_SECONDS_MAX}"
                ));
            }
        }
        Ok(Change::SetOrder(Order { service, who, why, made: now.0, ..order }))
    }

    /// The service of which something changes; `None` for all of them.
    pub(crate) fn change(&mut self, change: &Change, names: &mut Names) -> Option<String> {
        let service = match change {
            Change::SetOverride(it) => {
                self.overrides.insert(it.id.clone(), it.clone());
                Some(it.caller.clone())
            }
            Change::DropOverride(id) => self.overrides.remove(id).map(|it| it.caller),
            Change::SetOrder(order) => {
                self.orders.insert(order.service.clone(), order.clone());
                Some(order.service.clone()).filter(|service| service != "*")
            }
        };
        self.by_pair.clear();
        for it in self.overrides.values() {
            let word = Word {
                caller_procedure: it.caller_procedure.as_deref().map(|name| names.intern(name)),
                procedure: it.procedure.as_deref().map(|name| names.intern(name)),
                class: it.class.into(),
                expires: Millis(it.expires),
            };
            let pair = (names.intern(&it.caller), names.intern(&it.callee));
            self.by_pair.entry(pair).or_default().push(word);
        }
        if service.is_none() {
            self.epoch += 1;
        }
        service
    }

    /// What has ended, to be taken out.
    pub(crate) fn expired(&self, now: Millis) -> Vec<Change> {
        let over = |it: &&Override| it.expires <= now.0;
        let overrides = self.overrides.values().filter(over);
        let mut changes: Vec<_> = overrides.map(|it| Change::DropOverride(it.id.clone())).collect();
        for order in self.orders.values() {
            let mode_over = order.mode_until.is_some_and(|until| until <= now.0);
            let shield_over = order.shield_until.is_some_and(|until| until <= now.0 && until > 0);
            if mode_over || shield_over {
                let mut left = order.clone();
                if mode_over {
                    (left.mode, left.mode_until) = (None, None);
                }
                if shield_over {
                    left.shield_until = None;
                }
                changes.push(Change::SetOrder(left));
            }
        }
        changes
    }

    /// The class that an operator has said of an edge: the word that names most of it.
    pub(crate) fn class(&self, key: EdgeKey, now: Millis) -> Option<EdgeClass> {
        let words = self.by_pair.get(&(key.caller, key.callee))?;
        let fits = |said: Option<Name>, is: Name| said.is_none_or(|said| said == is);
        words
            .iter()
            .filter(|word| word.expires > now)
            .filter(|word| {
                fits(word.caller_procedure, key.caller_procedure)
                    && fits(word.procedure, key.procedure)
            })
            .max_by_key(|word| (word.procedure.is_some(), word.caller_procedure.is_some()))
            .map(|word| word.class)
    }

    /// What the agents of a service are told: its own order, over that for all.
    pub(crate) fn switches(&self, service: &str, now: Millis) -> SwitchOrder {
        let own = self.orders.get(service);
        let all = self.orders.get("*");
        let both = || own.into_iter().chain(all);
        let holds = |until: &Option<u64>| until.is_none_or(|until| until > now.0);
        let mode = both().find_map(|order| order.mode.clone().filter(|_| holds(&order.mode_until)));
        let shield = both()
            .find_map(|order| order.shield_until.filter(|&until| until == 0 || until > now.0));
        let said_by = both().find(|order| {
            (order.mode.is_some() && order.mode == mode)
                || (order.shield_until.is_some() && order.shield_until == shield)
        });
        SwitchOrder {
            mode,
            // Rounded up: a shield with some of a second left still stands.
            shield_left_seconds: shield.map(|until| until.saturating_sub(now.0).div_ceil(1000)),
            shield_until: shield,
            who: said_by.map(|order| order.who.clone()).unwrap_or_default(),
            why: said_by.map(|order| order.why.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn overrides(&self) -> impl Iterator<Item = &Override> {
        self.overrides.values()
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values()
    }
}

fn words(field: &str, text: &str) -> Result<(), String> {
    if text.trim().is_empty() || clean(text) != text {
        return Err(format!(
            "{field} is {text:?}; allowed is 1 to {WORDS_MAX} printable characters"
        ));
    }
    Ok(())
}

/// Whether agents understand it.
fn is_mode(text: &str) -> bool {
    let share = || {
        let percent = text.strip_prefix("enforce")?.trim().strip_suffix('%')?.trim();
        Share::percent(percent.parse().ok()?)
    };
    ["off", "observe", "enforce"].contains(&text) || share().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            for_seconds: 60,
        }
    }

    #[test]
    fn the_word_that_names_most_of_an_edge_holds_until_it_expires() {
        let mut said = Said::default();
        let mut names = Names::default();
        for request in [
            asked(None, None, "fail-close"),
            asked(Some("GET /"), None, "unknown"),
            asked(None, Some("/recs"), "fail-open"),
        ] {
            let change = said.override_of(request, NOW).unwrap();
            assert_eq!(said.change(&change, &mut names).as_deref(), Some("checkout"));
        }
        let [caller, root, other, callee, recs, list] =
            ["checkout", "GET /", "GET /x", "recs", "/recs", "/list"]
                .map(|name| names.intern(name));
        let later = Millis(NOW.0 + 60_000);
        for (caller_procedure, procedure, now, class) in [
            (other, list, NOW, Some(EdgeClass::FailClose)),
            (root, list, NOW, Some(EdgeClass::Unknown)),
            (root, recs, NOW, Some(EdgeClass::FailOpen)),
            (other, recs, NOW, Some(EdgeClass::FailOpen)),
            (other, recs, later, None),
        ] {
            let key = EdgeKey { caller, caller_procedure, callee, procedure };
            assert_eq!(said.class(key, now), class);
        }
        assert_eq!(said.expired(NOW), []);
        let expired = said.expired(later);
        assert_eq!(expired.len(), 3);
        expired.iter().for_each(|change| {
            said.change(change, &mut names);
        });
        assert_eq!(said.overrides().count(), 0);
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let said = Said::default();
        for (request, says) in [
            (
                asked(None, None, "failopen"),
                "class is \"failopen\"; allowed is fail-close, fail-open or unknown",
            ),
            (
                OverrideRequest { owner: " ".into(), ..asked(None, None, "unknown") },
                "owner is \" \"",
            ),
            (
                OverrideRequest { reason: "a\nb".into(), ..asked(None, None, "unknown") },
                "reason is",
            ),
            (
                OverrideRequest { for_seconds: 0, ..asked(None, None, "unknown") },
                "for_seconds is 0",
            ),
            (
                OverrideRequest { callee: String::new(), ..asked(None, None, "unknown") },
                "callee is",
            ),
        ] {
            let error = said.override_of(request, NOW).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
        let order = |mode: Option<&str>, shield_seconds| OrderRequest {
            service: "checkout".to_owned(),
            mode: mode.map(str::to_owned),
            mode_seconds: None,
            shield_seconds,
            who: "alice".to_owned(),
            why: "incident".to_owned(),
        };
        for (request, says) in [
            (order(Some("enforce 101%"), None), "mode is \"enforce 101%\"; allowed is off"),
            (order(Some("off\nshield: 24h"), None), "mode is"),
            (order(None, Some(86_401)), "shield_seconds is 86401"),
            (OrderRequest { who: String::new(), ..order(None, None) }, "who is"),
        ] {
            let error = said.order_of(request, NOW).unwrap_err();
            assert!(error.starts_with(says), "{error}");
        }
    }

    #[test]
    fn the_order_of_a_service_wins_over_that_for_all() {
        let mut said = Said::default();
        let mut names = Names::default();
        let mut order = |service: &str, mode: Option<&str>, shield_seconds| {
            let request = OrderRequest {
                service: service.to_owned(),
                mode: mode.map(str::to_owned),
                mode_seconds: Some(60),
                shield_seconds,
                who: service.to_owned(),
                why: "incident".to_owned(),
            };
            let change = said.order_of(request, NOW).unwrap();
            said.change(&change, &mut names);
        };
        order("*", Some("off"), None);
        order("checkout", Some("enforce 5%"), Some(30));
        order("cart", None, Some(30));
        let told = |service: &str, now| {
            let SwitchOrder { mode, shield_left_seconds, .. } = said.switches(service, now);
            (mode, shield_left_seconds)
        };
        let off = Some("off".to_owned());
        let later = |seconds: u64| Millis(NOW.0 + seconds * 1000);
        for (service, now, expected) in [
            ("payments", NOW, (off.clone(), None)),
            ("checkout", NOW, (Some("enforce 5%".to_owned()), Some(30))),
            ("checkout", Millis(NOW.0 + 29_001), (Some("enforce 5%".to_owned()), Some(1))),
            ("checkout", later(30), (Some("enforce 5%".to_owned()), None)),
            ("checkout", later(60), (None, None)),
            ("cart", later(10), (off.clone(), Some(20))),
        ] {
            assert_eq!(told(service, now), expected, "{service} {now:?}");
        }
    }
}
