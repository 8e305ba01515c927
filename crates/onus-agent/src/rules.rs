//! What was configured for a callee, as meant: its own rules and those of its procedures.

use onus_core::{EdgeClass, EdgePolicy};
use onus_learn::Annotation;

use crate::config::{CalleeOption, ConfigError, Says};
use crate::policy::Timeouts;

/// What was configured for a callee, as meant.
#[derive(Clone, Debug)]
pub(crate) struct CalleeRules {
    pub(crate) callee: String,
    /// What holds for procedures without rules of their own.
    pub(crate) all: EdgeRules,
    /// Retry rules by procedure.
    procedures: Vec<(String, EdgeRules)>,
    pub(crate) annotation: Option<Annotation>,
    pub(crate) class_override: Option<EdgeClass>,
}

/// What was configured for an edge, as meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EdgeRules {
    pub(crate) policy: EdgePolicy,
    pub(crate) timeouts: Timeouts,
    stacked: bool,
}

impl CalleeRules {
    /// The rules for a callee that nothing was said about.
    pub(crate) fn new(callee: &str) -> Self {
        Self {
            callee: callee.to_owned(),
            all: EdgeRules::default(),
            procedures: Vec::new(),
            annotation: None,
            class_override: None,
        }
    }

    /// The rules for a procedure of the callee: its own retry rules, else those of its method,
    /// else the callee's.
    pub(crate) fn of(&self, procedure: &str) -> EdgeRules {
        self.own(procedure).map_or(self.all, |(_, own)| {
            let policy = EdgePolicy { retry: own.policy.retry, ..self.all.policy };
            EdgeRules { policy, ..*own }
        })
    }

    /// Under which name the procedure has retry rules of its own: as it is, or by its method.
    pub(crate) fn own_name(&self, procedure: &str) -> Option<&str> {
        self.own(procedure).map(|(name, _)| name.as_str())
    }

    /// The names of the callee, and of methods and routes with rules of their own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let names = self.own_names().flat_map(|name| name.split(' '));
        names.chain([self.callee.as_str()])
    }

    /// Procedures and methods with retry rules of their own.
    pub(crate) fn own_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.procedures.iter().map(|(name, _)| name.as_str())
    }

    fn own(&self, procedure: &str) -> Option<&(String, EdgeRules)> {
        let method = procedure.split(' ').next().unwrap_or(procedure);
        let own = |name: &str| self.procedures.iter().find(|(own, _)| own == name);
        own(procedure).or_else(|| own(method))
    }

    /// Whether a retry policy names the callee.
    pub(crate) fn has_policy(&self) -> bool {
        self.all.policy.retry.is_some()
            || self.procedures.iter().any(|(_, own)| own.policy.retry.is_some())
    }

    /// Takes over what an operator said.
    pub(crate) fn apply(&mut self, option: &CalleeOption) -> Result<(), ConfigError> {
        match &option.says {
            Says::Retry(policy) => {
                let (mut retry, timeouts) = policy
                    .check()
                    .map_err(|source| ConfigError::Policy { edge: option.edge_text(), source })?;
                let rules = match &option.procedure {
                    None => &mut self.all,
                    Some(procedure) => {
                        // Who names a method has said that it may be sent twice.
                        if let Some(retry) = &mut retry {
                            retry.unsafe_methods = true;
                        }
                        self.procedures.push((procedure.clone(), EdgeRules::default()));
                        let last = self.procedures.len() - 1;
                        &mut self.procedures[last].1
                    }
                };
                rules.policy.retry = retry;
                rules.timeouts = timeouts;
                rules.stacked = policy.stacked;
            }
            Says::Declared(declared) => {
                if !(2..=100).contains(&declared.attempts) {
                    let attempts = declared.attempts;
                    return Err(ConfigError::Declared { callee: self.callee.clone(), attempts });
                }
                self.all.policy.declared = Some(*declared);
            }
            Says::Failures(errors) => self.all.policy.failures = *errors,
            Says::Annotation(annotation) => self.annotation = Some(*annotation),
            Says::Override(class) => self.class_override = Some(*class),
            Says::Untrusted => self.all.policy.trusted = false,
            Says::BrakeActs => self.all.policy.brake_acts = true,
        }
        Ok(())
    }

    /// Own retries on top of declared ones are refused unless somebody says that they are meant.
    pub(crate) fn refuse_unmeant_stack(&self) -> Result<(), ConfigError> {
        let all = std::iter::once(&self.all).chain(self.procedures.iter().map(|(_, own)| own));
        let unmeant = all.clone().any(|rules| rules.policy.retry.is_some() && !rules.stacked);
        if self.all.policy.declared.is_some() && unmeant {
            return Err(ConfigError::Stacked { callee: self.callee.clone() });
        }
        Ok(())
    }
}
