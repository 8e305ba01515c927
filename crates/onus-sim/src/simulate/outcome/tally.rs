//! What is counted in one run.

use onus_core::{CalleeClaim, Stop, Verdict};

use crate::simulate::plan::Plan;

/// What is counted in one run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tally {
    pub(crate) services: Vec<ServiceTally>,
    /// Requests from outside: all, answered without an error, and the same of those with a bad key.
    pub(crate) arrivals: u64,
    pub(crate) ok: u64,
    pub(crate) bad_arrivals: u64,
    pub(crate) bad_ok: u64,
    pub(crate) attempts: u64,
    pub(crate) retries: u64,
    /// Retries that ownership, the gate and a budget did not make.
    pub(crate) suppressed: u64,
    pub(crate) gated: u64,
    pub(crate) denied: u64,
    pub(crate) seconds: Vec<SecondTally>,
    /// Whether the last request from outside has come. Later answers are no sign of recovery.
    pub(crate) all_came: bool,
    /// What the client outside read last.
    pub(crate) last_answer: Option<Option<CalleeClaim>>,
    pub(crate) answered: u64,
    /// Requests that ended, and that never will.
    pub(crate) ended: u64,
    pub(crate) unended: u64,
    pub(crate) end: u64,
    pub(crate) interrupted: bool,
    focus: Vec<bool>,
    outage: Option<(u64, u64)>,
}

/// What is counted in one service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceTally {
    pub(crate) handled: Handled,
    /// Those with a bad key.
    pub(crate) bad: Handled,
    /// Those during the outage.
    pub(crate) outage: Handled,
    pub(crate) errors: u64,
    /// Errors that no call of the service has caused, and those of them that were unclaimed.
    pub(crate) own_errors: u64,
    pub(crate) own_unclaimed: u64,
}

/// Requests that a service handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handled {
    pub(crate) all: u64,
    /// Without a retry between them and the outside.
    pub(crate) original: u64,
}

/// One second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SecondTally {
    /// Requests from outside that came in it, and those of them that were answered without error
    /// while others still came.
    pub(crate) arrivals: u64,
    pub(crate) ok: u64,
    /// Requests at the compared services.
    pub(crate) handled: Handled,
}

/// What a count needs to know of a request.
pub(crate) trait Counted {
    fn is_original(&self) -> bool;
    fn has_bad_key(&self) -> bool;
    fn root_at(&self) -> u64;
}

impl Tally {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut focus = vec![false; plan.services.len()];
        for service in &plan.focus {
            focus[*service as usize] = true;
        }
        Self {
            services: vec![ServiceTally::default(); plan.services.len()],
            arrivals: 0,
            ok: 0,
            bad_arrivals: 0,
            bad_ok: 0,
            attempts: 0,
            retries: 0,
            suppressed: 0,
            gated: 0,
            denied: 0,
            seconds: Vec::new(),
            all_came: false,
            last_answer: None,
            answered: 0,
            ended: 0,
            unended: 0,
            end: 0,
            interrupted: false,
            focus,
            outage: plan.outage,
        }
    }

    fn second(&mut self, at: u64) -> &mut SecondTally {
        let second = (at / 1_000_000_000) as usize;
        if second >= self.seconds.len() {
            self.seconds.resize(second + 1, SecondTally::default());
        }
        &mut self.seconds[second]
    }

    pub(crate) fn arrival(&mut self, now: u64, bad_key: bool) {
        self.arrivals += 1;
        self.bad_arrivals += u64::from(bad_key);
        self.second(now).arrivals += 1;
    }

    /// A service gets a request; its number.
    pub(crate) fn handled(&mut self, service: u32, request: &impl Counted, now: u64) -> u64 {
        let original = request.is_original();
        let in_outage = self.outage.is_none_or(|(from, to)| (from..to).contains(&now));
        let tally = &mut self.services[service as usize];
        tally.handled.add(original);
        if request.has_bad_key() {
            tally.bad.add(original);
        }
        if in_outage {
            tally.outage.add(original);
        }
        let number = tally.handled.all;
        if self.focus[service as usize] {
            self.second(now).handled.add(original);
        }
        number
    }

    pub(crate) fn error(&mut self, service: u32, own: bool, unclaimed: bool) {
        let tally = &mut self.services[service as usize];
        tally.errors += 1;
        if own {
            tally.own_errors += 1;
            tally.own_unclaimed += u64::from(unclaimed);
        }
    }

    pub(crate) fn attempt(&mut self, first: bool) {
        self.attempts += 1;
        self.retries += u64::from(!first);
    }

    pub(crate) fn verdict(&mut self, verdict: &Verdict) {
        let Verdict::Stop(stop) = verdict else { return };
        match stop {
            Stop::Suppressed | Stop::Marked => self.suppressed += 1,
            Stop::Gated => self.gated += 1,
            Stop::BudgetDenied => self.denied += 1,
            Stop::Pushback
            | Stop::NotConfigured
            | Stop::NotReplayable
            | Stop::Exhausted
            | Stop::NoTime => {}
        }
    }

    /// The client outside gets its answer, without an error or with one.
    pub(crate) fn answer(&mut self, request: &impl Counted, read: Option<CalleeClaim>) {
        self.last_answer = Some(read);
        self.answered += 1;
        if read.is_none() {
            self.ok += 1;
            self.bad_ok += u64::from(request.has_bad_key());
            self.second(request.root_at()).ok += u64::from(!self.all_came);
        }
    }

    pub(crate) fn ended(&mut self) {
        self.ended += 1;
    }

    /// The run is over, with so many requests that nobody will ever answer.
    pub(crate) fn end(&mut self, now: u64, unended: u64) {
        self.end = now;
        self.unended = unended;
    }

    /// Requests at the compared services: with a bad key, or during the outage.
    pub(crate) fn compared(&self, of: fn(&ServiceTally) -> Handled) -> Handled {
        let services = self.services.iter().zip(&self.focus).filter(|(_, focus)| **focus);
        services.fold(Handled::default(), |sum, (service, _)| {
            let handled = of(service);
            Handled { all: sum.all + handled.all, original: sum.original + handled.original }
        })
    }
}

impl Handled {
    fn add(&mut self, original: bool) {
        self.all += 1;
        self.original += u64::from(original);
    }

    /// How many for each that no retry has caused; `None` without one.
    pub(crate) fn factor(self) -> Option<f64> {
        (self.original > 0).then(|| self.all as f64 / self.original as f64)
    }
}
