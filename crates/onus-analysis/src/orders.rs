//! What operators have said, checked, and what follows from it for an edge and a service.

use std::collections::HashMap;

use onus_api::{Order, OrderRequest, Override, SwitchOrder};
use onus_core::Share;

use crate::clock::Millis;
use crate::date;
use crate::names::clean;
use crate::overrides::Overrides;

/// The most overrides, and the most services with an order.
pub(crate) const ORDERS_MAX: usize = 10_000;
pub(crate) const WORDS_MAX: usize = 256;
const SHIELD_SECONDS_MAX: u64 = 86_400;

/// All that operators have said.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) overrides: Overrides,
    orders: HashMap<String, Order>,
    /// Rises when something is said for all services.
    pub(crate) epoch: u64,
}

/// Something that operators change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    SetOverride(Override),
    DropOverride(Override),
    SetOrder(Order),
}

impl Change {
    /// For the audit log: what is done, of what, in words.
    pub(crate) fn told(&self) -> (&'static str, String, String) {
        match self {
            Self::SetOverride(it) => ("override-set", it.subject(), detail(it)),
            Self::DropOverride(it) => ("override-dropped", it.subject(), detail(it)),
            Self::SetOrder(order) => {
                let Order { service, mode, mode_until, shield_until, who, why, made: _ } = order;
                let until = |until: u64| format!("until {}", date::show(Millis(until)));
                let mode = match (mode, *mode_until) {
                    (None, _) => "no mode".to_owned(),
                    (Some(mode), None) => format!("mode {mode} until it is taken back"),
                    (Some(mode), Some(end)) => format!("mode {mode} {}", until(end)),
                };
                let shield = match *shield_until {
                    None => "no shield".to_owned(),
                    Some(0) => "shield down".to_owned(),
                    Some(end) => format!("shield {}", until(end)),
                };
                let detail = format!("{mode}; {shield}; by {who}: {why}");
                ("order-set", service.clone(), detail)
            }
        }
    }
}

impl Said {
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
            // Down for this service is something to say only where a shield is up for all.
            Some(0) => order.shield_until = self.shields_all(&service, now).then_some(0),
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

    /// Whether a shield is up for all services, of which this is one.
    fn shields_all(&self, service: &str, now: Millis) -> bool {
        let all = self.orders.get("*").filter(|_| service != "*");
        all.is_some_and(|order| order.shield_until.is_some_and(|until| until > now.0))
    }

    /// The service of which something changes; `None` for all of them.
    pub(crate) fn change(&mut self, change: &Change) -> Option<String> {
        let service = match change {
            Change::SetOverride(it) => {
                self.overrides.set(it.clone());
                Some(it.caller.clone())
            }
            Change::DropOverride(it) => {
                self.overrides.drop(&it.id);
                Some(it.caller.clone())
            }
            Change::SetOrder(order) => {
                // An order that says nothing takes no room.
                match order.mode.is_none() && order.shield_until.is_none() {
                    true => self.orders.remove(&order.service),
                    false => self.orders.insert(order.service.clone(), order.clone()),
                };
                Some(order.service.clone()).filter(|service| service != "*")
            }
        };
        if service.is_none() {
            self.epoch += 1;
        }
        service
    }

    /// What has ended, to be taken out.
    pub(crate) fn expired(&self, now: Millis) -> Vec<Change> {
        let over = self.overrides.iter().filter(|it| it.expires <= now.0);
        let mut changes: Vec<_> = over.cloned().map(Change::DropOverride).collect();
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

    /// When something ends next.
    pub(crate) fn next_end(&self, now: Millis) -> Option<Millis> {
        let overrides = self.overrides.iter().map(|it| it.expires);
        let orders = self.orders.values().flat_map(|order| [order.mode_until, order.shield_until]);
        overrides.chain(orders.flatten()).filter(|&end| end > now.0).min().map(Millis)
    }

    /// What the agents of a service are told: its own order, over that for all.
    pub(crate) fn switches(&self, service: &str, now: Millis) -> SwitchOrder {
        let own = self.orders.get(service);
        let all = self.orders.get("*");
        let both = || own.into_iter().chain(all);
        let holds = |until: &Option<u64>| until.is_none_or(|until| until > now.0);
        let mode_by = both().find(|order| order.mode.is_some() && holds(&order.mode_until));
        let mode = mode_by.and_then(|order| order.mode.clone());
        let shield = both()
            .find_map(|order| order.shield_until.filter(|&until| until == 0 || until > now.0));
        let said_by = both().find(|order| {
            (order.mode.is_some() && order.mode == mode)
                || (order.shield_until.is_some() && order.shield_until == shield)
        });
        SwitchOrder {
            mode,
            mode_until: mode_by.and_then(|order| order.mode_until),
            // Rounded up: a shield with some of a second left still stands.
            shield_left_seconds: shield.map(|until| until.saturating_sub(now.0).div_ceil(1000)),
            shield_until: shield,
            who: said_by.map(|order| order.who.clone()).unwrap_or_default(),
            why: said_by.map(|order| order.why.clone()).unwrap_or_default(),
        }
    }

    pub(crate) fn orders(&self) -> impl Iterator<Item = &Order> {
        self.orders.values()
    }
}

/// An override in words.
fn detail(it: &Override) -> String {
    let Override { class, source, owner, reason, ticket, expires, .. } = it;
    let (class, source) = (class.as_str(), source.as_str());
    let ticket = if ticket.is_empty() { String::new() } else { format!(" ({ticket})") };
    let until = date::show(Millis(*expires));
    format!("{class} until {until}, by the {source}; {owner}: {reason}{ticket}")
}

pub(crate) fn words(field: &str, text: &str) -> Result<(), String> {
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
    use onus_api::{OverrideRequest, OverrideSource};

    use super::*;

    const NOW: Millis = Millis(1_000_000);

    #[test]
    fn what_has_ended_is_taken_out_at_its_time() {
        let mut said = Said::default();
        let asked = OverrideRequest {
            caller: "checkout".to_owned(),
            callee: "recs".to_owned(),
            class: "fail-open".to_owned(),
            owner: "alice".to_owned(),
            reason: "known".to_owned(),
            for_seconds: Some(60),
            ..OverrideRequest::default()
        };
        let it = Overrides::checked(asked, OverrideSource::Api, NOW).unwrap();
        let order = OrderRequest {
            service: "checkout".to_owned(),
            mode: Some("off".to_owned()),
            mode_seconds: Some(30),
            shield_seconds: Some(90),
            who: "alice".to_owned(),
            why: "incident".to_owned(),
        };
        let order = said.order_of(order, NOW).unwrap();
        for change in [Change::SetOverride(it), order] {
            assert_eq!(said.change(&change).as_deref(), Some("checkout"));
        }
        let mut now = NOW;
        for seconds in [30, 60, 90] {
            let end = Millis(NOW.0 + seconds * 1000);
            assert_eq!(said.next_end(now), Some(end));
            assert_eq!(said.expired(Millis(end.0 - 1)), []);
            let ended = said.expired(end);
            assert_eq!(ended.len(), 1, "{seconds}");
            ended.iter().for_each(|change| {
                said.change(change);
            });
            now = end;
        }
        assert_eq!((said.next_end(now), said.overrides.iter().count()), (None, 0));
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        let said = Said::default();
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
            said.change(&change);
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
