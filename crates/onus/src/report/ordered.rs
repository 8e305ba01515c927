//! What administrators have said of one process, side by side: a mode and a shield, each with its
//! own end, and who said it and why.

use std::time::Duration;

use onus_agent::{Switches, Timestamp, parse_mode};
use onus_api::{Order, SwitchRequest};
use tokio::task::AbortHandle;

/// What holds of what administrators have said.
#[derive(Debug, Default)]
pub(crate) struct Ordered {
    mode: Option<Said>,
    shield: Option<Said>,
    /// Who waits for the end of a part.
    waiting: Option<AbortHandle>,
}

#[derive(Clone, Debug)]
struct Said {
    /// The mode; of a shield `down` where it was taken down.
    what: String,
    /// When it ends; `None` for no end.
    until: Option<Timestamp>,
    who: String,
    why: String,
    /// When it was said, in milliseconds since 1970.
    made: u64,
}

/// Why a switch is not thrown.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is meant for another service.
    OtherService(String),
    /// It cannot be meant.
    Order(String),
}

impl Ordered {
    /// Takes over what a request names; what it does not name stays.
    pub(crate) fn take(
        &mut self,
        asked: &SwitchRequest,
        service: &str,
        now: Timestamp,
        made: u64,
    ) -> Result<(), Refused> {
        let SwitchRequest { service: meant, mode, mode_seconds, shield_seconds, who, why } = asked;
        if let Some(meant) = meant
            && meant != service
            && meant != "*"
        {
            return Err(Refused::OtherService(format!(
                "the order is for {meant:?}, and this process is of {service:?}"
            )));
        }
        if who.trim().is_empty() || why.trim().is_empty() {
            let wrong = "who and why are missing: they stand in the log and in onus_switch_info";
            return Err(Refused::Order(wrong.to_owned()));
        }
        if let Some(text) = mode
            && text != "none"
            && parse_mode(text).is_none()
        {
            return Err(Refused::Order(format!(
                "mode is {text:?}; allowed is off, observe, enforce, enforce with a share such as enforce 25%, or none"
            )));
        }
        if let Some(seconds) = mode_seconds
            && !(1..=MODE_SECONDS_MAX).contains(seconds)
        {
            return Err(Refused::Order(format!(
                "mode_seconds is {seconds}; allowed is 1 to {MODE_SECONDS_MAX}"
            )));
        }
        if let Some(seconds) = shield_seconds.filter(|&seconds| seconds > SHIELD_SECONDS_MAX) {
            return Err(Refused::Order(format!(
                "shield_seconds is {seconds}; allowed is up to {SHIELD_SECONDS_MAX}"
            )));
        }
        let until = |seconds| now.saturating_add(Duration::from_secs(seconds));
        let said = |what: &str, until| {
            let (who, why) = (short(who), short(why));
            Some(Said { what: what.to_owned(), until, who, why, made })
        };
        match mode.as_deref() {
            None => {}
            Some("none") => self.mode = None,
            Some(text) => self.mode = said(text, mode_seconds.map(until)),
        }
        match *shield_seconds {
            None => {}
            // No shield of anybody lasts longer, so that nothing is left to be taken down then.
            Some(0) => self.shield = said(DOWN, Some(until(SHIELD_SECONDS_MAX))),
            Some(seconds) => self.shield = said("up", Some(until(seconds))),
        }
        Ok(())
    }

    /// What holds, as the agent takes it.
    pub(crate) fn switches(&mut self, now: Timestamp) -> Switches {
        let holds = |said: &Said| said.until.is_none_or(|until| until > now);
        self.mode = self.mode.take().filter(holds);
        self.shield = self.shield.take().filter(holds);
        let mut words: [Vec<&str>; 2] = [Vec::new(), Vec::new()];
        for said in [&self.mode, &self.shield].into_iter().flatten() {
            for (words, word) in words.iter_mut().zip([&said.who, &said.why]) {
                if !words.contains(&word.as_str()) {
                    words.push(word);
                }
            }
        }
        let [who, why] = words.map(|words| words.join("; "));
        Switches {
            mode: self.mode.as_ref().and_then(|said| parse_mode(&said.what)),
            shield: self.shield.as_ref().map(|said| match (&*said.what, said.until) {
                (DOWN, _) | (_, None) => Duration::ZERO,
                (_, Some(until)) => until.saturating_since(now),
            }),
            who,
            why,
        }
    }

    /// Somebody waits for the next end, in place of whoever did before.
    pub(crate) fn wait_by(&mut self, waiting: Option<AbortHandle>) {
        let before = std::mem::replace(&mut self.waiting, waiting);
        before.inspect(AbortHandle::abort);
    }

    /// When the next of them ends.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        [&self.mode, &self.shield].into_iter().flatten().filter_map(|said| said.until).min()
    }

    /// What holds, for people: one line each.
    pub(crate) fn list(&self, service: &str, now: Timestamp, wall: u64) -> Vec<Order> {
        let ends = |said: &Said| {
            let left = said.until?.saturating_since(now).as_millis();
            Some(wall.saturating_add(u64::try_from(left).unwrap_or(u64::MAX)))
        };
        let line = |said: &Said| Order {
            service: service.to_owned(),
            who: said.who.clone(),
            why: said.why.clone(),
            made: said.made,
            ..Order::default()
        };
        let mode = self.mode.iter().map(|said| Order {
            mode: Some(said.what.clone()),
            mode_until: ends(said),
            ..line(said)
        });
        let shield = self.shield.iter().map(|said| Order {
            shield_until: if said.what == DOWN { Some(0) } else { ends(said) },
            ..line(said)
        });
        mode.chain(shield).collect()
    }
}

const DOWN: &str = "down";
/// The longest shield that anybody may put up.
pub(crate) const SHIELD_SECONDS_MAX: u64 = 24 * 3600;
const MODE_SECONDS_MAX: u64 = 366 * 24 * 3600;
/// The most characters of who and why that are kept.
const WORDS_MAX: usize = 128;

fn short(text: &str) -> String {
    text.chars().take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use onus_agent::Mode;

    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.saturating_add(Duration::from_secs(seconds))
    }

    fn asked(mode: Option<&str>, shield_seconds: Option<u64>, who: &str) -> SwitchRequest {
        SwitchRequest {
            mode: mode.map(str::to_owned),
            shield_seconds,
            who: who.to_owned(),
            why: format!("{who} knows"),
            ..SwitchRequest::default()
        }
    }

    #[test]
    fn mode_and_shield_stand_side_by_side_until_each_ends() {
        let mut ordered = Ordered::default();
        let off = SwitchRequest { mode_seconds: Some(100), ..asked(Some("off"), None, "bob") };
        ordered.take(&asked(None, Some(60), "alice"), "cart", at(0), 1_000).unwrap();
        ordered.take(&off, "cart", at(10), 11_000).unwrap();
        let seconds = |ordered: &mut Ordered, now| {
            let switches = ordered.switches(at(now));
            (switches.mode, switches.shield.map(|left| left.as_secs()), switches.who)
        };
        let off = Some(Mode::Off);
        assert_eq!(seconds(&mut ordered, 20), (off, Some(40), "bob; alice".to_owned()));
        assert_eq!(ordered.next_end(), Some(at(60)));
        let listed: Vec<_> = ordered
            .list("cart", at(20), 20_000)
            .into_iter()
            .map(|it| (it.mode, it.mode_until, it.shield_until, it.who, it.made))
            .collect();
        assert_eq!(
            listed,
            [
                (Some("off".to_owned()), Some(110_000), None, "bob".to_owned(), 11_000),
                (None, None, Some(60_000), "alice".to_owned(), 1_000),
            ]
        );
        assert_eq!(seconds(&mut ordered, 60), (off, None, "bob".to_owned()));
        assert_eq!(ordered.next_end(), Some(at(110)));
        assert_eq!(seconds(&mut ordered, 110), (None, None, String::new()));
        assert_eq!(ordered.next_end(), None);
    }

    #[test]
    fn each_is_taken_back_by_itself() {
        let mut ordered = Ordered::default();
        ordered.take(&asked(Some("enforce 10%"), Some(60), "alice"), "cart", at(0), 0).unwrap();
        ordered.take(&asked(Some("none"), None, "alice"), "cart", at(1), 0).unwrap();
        let switches = ordered.switches(at(1));
        assert_eq!((switches.mode, switches.shield), (None, Some(Duration::from_secs(59))));
        // A shield of the analysis is taken down as well, for as long as any could last.
        ordered.take(&asked(None, Some(0), "alice"), "cart", at(2), 0).unwrap();
        assert_eq!(ordered.switches(at(3)).shield, Some(Duration::ZERO));
        assert_eq!(ordered.list("cart", at(3), 0)[0].shield_until, Some(0));
        assert_eq!(ordered.switches(at(2 + SHIELD_SECONDS_MAX)), Switches::default());
    }

    #[test]
    fn what_cannot_be_meant_changes_nothing() {
        let to = |service: &str| SwitchRequest {
            service: Some(service.to_owned()),
            ..asked(Some("off"), None, "alice")
        };
        let mut ordered = Ordered::default();
        for (request, says) in [
            (to("payments"), "OtherService(\"the order is for \\\"payments\\\""),
            (asked(Some("of"), None, "alice"), "Order(\"mode is \\\"of\\\"; allowed is off"),
            (asked(Some("off\nshield: on"), None, "alice"), "Order(\"mode is"),
            (asked(None, Some(90_000), "alice"), "Order(\"shield_seconds is 90000; allowed"),
            (
                SwitchRequest { mode_seconds: Some(0), ..to("*") },
                "Order(\"mode_seconds is 0; allowed is 1",
            ),
            (asked(Some("off"), None, " "), "Order(\"who and why are missing"),
        ] {
            let refused = ordered.take(&request, "cart", at(0), 0).unwrap_err();
            assert!(format!("{refused:?}").starts_with(says), "{refused:?}");
            assert_eq!(ordered.switches(at(0)), Switches::default());
        }
        ordered.take(&to("*"), "cart", at(0), 0).unwrap();
        ordered.take(&to("cart"), "cart", at(0), 0).unwrap();
        assert_eq!(ordered.switches(at(0)).mode, Some(Mode::Off));
    }
}
