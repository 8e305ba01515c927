//! The set-up and the facts of a vector as values of the core, for hosts that are built on it.

use onus_core::{
    Backoff, BudgetConfig, CallError, DeclaredRetries, Deposit, Draw, EdgePolicy, ErrorSet,
    Failure, MethodKind, Mode, Pushback, RetryPolicy, Share,
};

use super::{
    Budget, DepositName, Draws, Edge, Failed, Method, ModeName, PushbackSetup, Service, Switch,
};
use crate::literal::ErrorName;

fn mode(name: ModeName, percent: u8) -> Mode {
    match name {
        ModeName::Off => Mode::Off,
        ModeName::Observe => Mode::Observe,
        ModeName::Enforce => Mode::Enforce(Share::percent(percent).unwrap_or(Share::ALL)),
    }
}

impl Service {
    /// The mode at the start.
    #[must_use]
    pub fn mode(&self) -> Mode {
        mode(self.mode, self.share)
    }
}

impl Switch {
    /// The mode from now on.
    #[must_use]
    pub fn mode(&self) -> Mode {
        mode(self.mode, self.share.unwrap_or(100))
    }
}

impl Edge {
    /// All that is configured for the edge.
    #[must_use]
    pub fn policy(&self) -> EdgePolicy {
        let mut retry = RetryPolicy::new(self.attempts);
        if let Some(policy) = &mut retry {
            policy.errors = errors(self.errors.as_ref());
            policy.unsafe_methods = self.unsafe_methods;
            policy.backoff = Backoff::new(self.backoff.base.0, self.backoff.max.0);
            policy.budget = self.budget.as_ref().map(Budget::config);
            policy.gate = self.gate;
            policy.min_attempt_time = self.min_attempt_time.0;
            policy.probes = self.probes;
        }
        let declared = self.declared.as_ref().map(|declared| DeclaredRetries {
            attempts: declared.attempts,
            errors: errors(declared.errors.as_ref()),
        });
        EdgePolicy {
            retry,
            declared,
            trusted: self.trusted,
            brake_acts: self.brake_acts,
            ..EdgePolicy::default()
        }
    }
}

fn errors(names: Option<&Vec<ErrorName>>) -> ErrorSet {
    names.map_or_else(ErrorSet::failures, |names| names.iter().map(|name| name.0).collect())
}

impl Budget {
    /// The budget's configuration.
    #[must_use]
    pub const fn config(&self) -> BudgetConfig {
        BudgetConfig {
            percent: self.percent,
            deposit: match self.deposit {
                DepositName::Request => Deposit::Request,
                DepositName::Success => Deposit::Success,
            },
            min_per_second: self.min_per_second,
            ttl_seconds: self.ttl,
        }
    }
}

impl From<Method> for MethodKind {
    fn from(method: Method) -> Self {
        match method {
            Method::Safe => Self::Safe,
            Method::Unsafe => Self::Unsafe,
            Method::Grpc => Self::Grpc,
        }
    }
}

impl Failed {
    /// The failed attempt as the host sees it.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure {
            error: self.error.map_or(CallError::Http(503), |name| name.0),
            claim: self.claim,
            attempt: self.attempt,
            pushback: match self.pushback {
                PushbackSetup::None => Pushback::None,
                PushbackSetup::Refused => Pushback::Refused,
                PushbackSetup::After(wait) => Pushback::After(wait.0),
            },
            replayable: self.replayable,
            body_broke: false,
        }
    }
}

impl Draws {
    /// The random number that answers the three questions like this.
    #[must_use]
    pub fn draw(&self) -> Draw {
        // The smallest number of 16 bits that is not below the permille.
        let of_16_bits = |permille: u16| (u64::from(permille) << 16).div_ceil(1000).min(0xffff);
        let jitter = (u64::from(self.jitter) << 32).div_ceil(1000).saturating_sub(1);
        Draw::from_bits(jitter << 32 | of_16_bits(self.probe) << 16 | of_16_bits(self.gate))
    }
}
