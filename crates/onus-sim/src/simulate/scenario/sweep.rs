//! One parameter that takes several values.

use serde::Deserialize;

/// A sweep as it is typed.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct SweepFile {
    pub(crate) parameter: Parameter,
    pub(crate) values: Vec<f64>,
}

/// What can be swept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Parameter {
    /// The attempts of every policy that does not fix them itself.
    Attempts,
    /// The percentage of every budget of a policy.
    Percent,
    /// The floor of every budget of a policy.
    Floor,
    /// The probability of every fault that has one.
    Probability,
    /// The share of bad keys.
    BadKeys,
    /// Requests per second.
    Rate,
    /// The hops of a generated chain.
    Hops,
    /// The instances of services that do not say otherwise.
    Instances,
}

impl Parameter {
    const ALL: [Self; 8] = [
        Self::Attempts,
        Self::Percent,
        Self::Floor,
        Self::Probability,
        Self::BadKeys,
        Self::Rate,
        Self::Hops,
        Self::Instances,
    ];

    /// The spelling in scenarios and results.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Attempts => "attempts",
            Self::Percent => "percent",
            Self::Floor => "floor",
            Self::Probability => "probability",
            Self::BadKeys => "bad-keys",
            Self::Rate => "rate",
            Self::Hops => "hops",
            Self::Instances => "instances",
        }
    }

    /// The values that make sense.
    const fn range(self) -> (f64, f64, bool) {
        match self {
            Self::Attempts => (1.0, 1000.0, true),
            Self::Percent => (0.0, 1000.0, true),
            Self::Floor => (0.0, 1e6, true),
            Self::Probability | Self::BadKeys => (0.0, 1.0, false),
            Self::Rate => (1e-3, 1e7, false),
            Self::Hops => (1.0, 100.0, true),
            Self::Instances => (1.0, 10_000.0, true),
        }
    }
}

impl SweepFile {
    /// Reads `PARAM=a,b,c`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let names = || Parameter::ALL.map(Parameter::as_str).join(", ");
        let (name, values) = text
            .split_once('=')
            .ok_or_else(|| format!("`{text}` is no sweep; allowed is PARAM=A,B,…"))?;
        let parameter = Parameter::ALL.into_iter().find(|parameter| parameter.as_str() == name);
        let parameter =
            parameter.ok_or_else(|| format!("`{name}` cannot be swept; allowed is {}", names()))?;
        let values = values.split(',').map(|value| {
            value
                .parse()
                .map_err(|_| format!("`{value}` is no value of {name}; allowed is a number"))
        });
        let sweep = Self { parameter, values: values.collect::<Result<_, _>>()? };
        sweep.check()?;
        Ok(sweep)
    }

    /// What is wrong with the values.
    pub(crate) fn check(&self) -> Result<(), String> {
        let name = self.parameter.as_str();
        if self.values.is_empty() {
            return Err(format!("the sweep of {name} has no values"));
        }
        let (least, most, whole) = self.parameter.range();
        let allowed =
            |value: f64| (least..=most).contains(&value) && !(whole && value.fract() != 0.0);
        match self.values.iter().find(|value| !allowed(**value)) {
            None => Ok(()),
            Some(value) => {
                let kind = if whole { "whole numbers" } else { "numbers" };
                Err(format!("{value} is no value of {name}; allowed are {kind} {least} to {most}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_as_they_are_typed() {
        for (text, complaint) in [
            ("attempts=2,3", ""),
            ("probability=0,0.5,1", ""),
            ("probability=1.5", "1.5 is no value of probability; allowed are numbers 0 to 1"),
            ("hops=2.5", "2.5 is no value of hops; allowed are whole numbers 1 to 100"),
            ("hops=x", "`x` is no value of hops; allowed is a number"),
            ("hops=NaN", "NaN is no value of hops"),
            ("colour=1", "`colour` cannot be swept; allowed is attempts, percent,"),
            ("hops", "`hops` is no sweep; allowed is PARAM=A,B"),
        ] {
            let found = SweepFile::parse(text).err().unwrap_or_default();
            assert!(found.starts_with(complaint), "{text}: {found}");
            assert_eq!(found.is_empty(), complaint.is_empty(), "{text}: {found}");
        }
    }
}
