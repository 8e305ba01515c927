//! Figures of an experiment, and what may be said of them.

use onus_sim::simulate::{Estimate, Experiment, Outcome};

use super::outcome;

/// A figure of an outcome.
pub(crate) type Figure = fn(&Outcome) -> Option<Estimate>;

pub(crate) const LOAD: Figure = |outcome| outcome.load_factor;

pub(crate) const BAD_LOAD: Figure = |outcome| outcome.bad_keys?.load_factor;

pub(crate) const OK: Figure = |outcome| Some(outcome.availability);

/// Only where every run recovers.
pub(crate) const RECOVERY: Figure = |outcome| outcome.recovery?.seconds;

#[track_caller]
pub(crate) fn figure(experiment: &Experiment, figure: Figure, policy: &str) -> Estimate {
    let found = figure(outcome(experiment, policy));
    found.unwrap_or_else(|| panic!("{}, {policy}: no such figure", experiment.scenario))
}

/// That a figure of each policy comes from twenty runs and is known to a twentieth.
#[track_caller]
pub(crate) fn check_sure(experiment: &Experiment, what: Figure, policies: &[&str]) {
    for policy in policies {
        let Estimate { mean, half_width, runs } = figure(experiment, what, policy);
        let sure = runs >= 20 && half_width <= 0.05 * mean;
        assert!(sure, "{}, {policy}: {mean} ± {half_width}, {runs} runs", experiment.scenario);
    }
}

/// That the figure of each policy is the one that is printed here, as far as its digits and the
/// confidence interval go. One of twenty intervals of 95 % misses by luck alone, so half as much
/// is added: one of two hundred.
#[track_caller]
pub(crate) fn check_printed(experiment: &Experiment, what: Figure, rows: &[(&str, &str)]) {
    for (policy, printed) in rows {
        let found = figure(experiment, what, policy);
        let digits = printed.split_once('.').map_or(0, |(_, digits)| digits.len());
        let rounding = 0.5 * 10_f64.powi(-(digits as i32)) + 1e-9;
        let off = (found.mean - printed.parse::<f64>().expect("a number")).abs();
        assert!(
            off <= 1.5 * found.half_width + rounding,
            "{}, {policy}: {found:?}, and not {printed}",
            experiment.scenario
        );
    }
    check_sure(experiment, what, &rows.iter().map(|(policy, _)| *policy).collect::<Vec<_>>());
}

/// That a figure of each policy lies in its range.
#[track_caller]
pub(crate) fn check_within(experiment: &Experiment, what: Figure, rows: &[(&str, f64, f64)]) {
    for (policy, least, most) in rows {
        let found = figure(experiment, what, policy).mean;
        let scenario = &experiment.scenario;
        assert!((*least..=*most).contains(&found), "{scenario}, {policy}: {found}");
    }
}

/// That every policy of a group has a smaller figure than every one of the next group, by more
/// than both intervals.
#[track_caller]
pub(crate) fn check_order(experiment: &Experiment, what: Figure, groups: &[&[&str]]) {
    for pair in groups.windows(2) {
        for (less, more) in pair[0].iter().flat_map(|less| pair[1].iter().map(move |m| (less, m))) {
            let (low, high) = (figure(experiment, what, less), figure(experiment, what, more));
            assert!(
                low.mean + low.half_width < high.mean - high.half_width,
                "{}: {less} {low:?} and {more} {high:?}",
                experiment.scenario
            );
        }
    }
}

/// That of each policy no run recovers before its end.
#[track_caller]
pub(crate) fn check_never_recovers(experiment: &Experiment, policies: &[&str]) {
    for policy in policies {
        let recovery = outcome(experiment, policy).recovery.expect("there is an outage");
        assert_eq!(recovery.recovered, 0, "{}, {policy}", experiment.scenario);
    }
}
