//! The result for people.

use std::fmt::Write;

use comfy_table::{Cell, Table};
use onus_sim::simulate::{Estimate, Exact, Experiment, Outcome};

use crate::table::{lined, number};

/// More services than these are not shown one by one.
const SERVICES_MAX: usize = 12;

/// What the scenario shows, the table, and what its columns mean.
pub(crate) fn render(experiment: &Experiment, exact: bool) -> String {
    let mut text = format!("{}\n\n", experiment.about);
    let has = Columns::of(experiment);
    let _ = writeln!(text, "{}", table(experiment, &has, exact));
    text.push('\n');
    if has.services {
        text.push_str("Columns with names of services: requests handled for one from outside.\n");
    }
    text.push_str(
        "load: requests at the services with faults for each that no retry has caused. \
         ok: requests answered without an error.\n",
    );
    if has.stopped {
        let against = experiment.against.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "stopped: requests that {against} would have sent beyond those that were: by the \
             direct callers of the services with faults, and by all services."
        );
    }
    text.push_str(&own_unclaimed(experiment));
    let runs = experiment.outcomes.iter().map(|outcome| outcome.runs).max().unwrap_or(0);
    if runs > 1 {
        let _ = writeln!(text, "Means of {runs} runs; ± is half of a 95 % confidence interval.");
    }
    if experiment.partial {
        text.push_str("PARTIAL: the run was interrupted.\n");
    }
    text
}

/// Errors of a service's own that it did not claim: its callers lose their retries.
fn own_unclaimed(experiment: &Experiment) -> String {
    let mut text = String::new();
    for outcome in &experiment.outcomes {
        for service in &outcome.services {
            let Some(share) = service.own_unclaimed.filter(|share| share.mean > 0.0) else {
                continue;
            };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{}: {} does not claim {:.1} of 10 errors of its own.",
                outcome.policy,
                service.name,
                10.0 * share.mean
            );
        }
    }
    text
}

/// Which columns there are.
struct Columns {
    value: Option<&'static str>,
    services: bool,
    bad_keys: bool,
    recovery: bool,
    stopped: bool,
}

impl Columns {
    fn of(experiment: &Experiment) -> Self {
        let any = |is: fn(&Outcome) -> bool| experiment.outcomes.iter().any(is);
        Self {
            value: experiment.parameter,
            services: has_services(experiment),
            bad_keys: any(|outcome| outcome.bad_keys.is_some()),
            recovery: any(|outcome| outcome.recovery.is_some()),
            stopped: any(|outcome| outcome.stopped.is_some()),
        }
    }
}

/// Whether services have columns: they are few, and the same in every row.
fn has_services(experiment: &Experiment) -> bool {
    let mut rows = experiment.outcomes.iter().map(|outcome| outcome.services.len());
    let first = rows.next().unwrap_or(0);
    first <= SERVICES_MAX && rows.all(|services| services == first)
}

fn table(experiment: &Experiment, has: &Columns, exact: bool) -> Table {
    let mut table = lined();
    let mut header = vec![Cell::new("policy")];
    header.extend(has.value.map(number));
    if let (true, Some(outcome)) = (has.services, experiment.outcomes.first()) {
        header.extend(outcome.services.iter().map(|service| number(&service.name)));
    }
    header.extend([number("load"), number("ok %")]);
    if has.bad_keys {
        header.extend([number("load, bad keys"), number("ok %, bad"), number("ok %, others")]);
    }
    if has.recovery {
        header.push(number("recovery s"));
    }
    if has.stopped {
        header.extend([number("stopped, direct"), number("stopped, all")]);
    }
    table.set_header(header);
    for outcome in &experiment.outcomes {
        table.add_row(row(outcome, has));
        if let (true, Some(exact)) = (exact, &outcome.exact) {
            table.add_row(closed_form(outcome, exact, has));
        }
    }
    table
}

fn row(outcome: &Outcome, has: &Columns) -> Vec<Cell> {
    let mut row = vec![Cell::new(&outcome.policy)];
    row.extend(outcome.value.map(number));
    if has.services {
        row.extend(outcome.services.iter().map(|service| estimate(Some(service.per_request), 1.0)));
    }
    row.push(estimate(outcome.load_factor, 1.0));
    row.push(estimate(Some(outcome.availability), 100.0));
    if has.bad_keys {
        let bad = outcome.bad_keys;
        row.push(estimate(bad.and_then(|bad| bad.load_factor), 1.0));
        row.push(estimate(bad.and_then(|bad| bad.availability), 100.0));
        row.push(estimate(bad.and_then(|bad| bad.others), 100.0));
    }
    if has.recovery {
        row.push(match outcome.recovery {
            None => number("-"),
            Some(recovery) => match recovery.seconds {
                Some(seconds) => estimate(Some(seconds), 1.0),
                None if recovery.recovered == 0 => number("never"),
                None => number(format!("{} of {} runs", recovery.recovered, outcome.runs)),
            },
        });
    }
    if let Some(stopped) = outcome.stopped {
        row.extend([stopped.direct, stopped.all].map(|count| number(format!("{count:.0}"))));
    }
    row
}

/// What closed forms say of a row.
fn closed_form(outcome: &Outcome, exact: &Exact, has: &Columns) -> Vec<Cell> {
    let mut row = vec![Cell::new("  closed form")];
    row.extend(outcome.value.map(|_| Cell::new("")));
    if has.services {
        row.extend(exact.load.iter().map(number));
    }
    row.extend([number(exact.load_factor), number(exact.availability)]);
    row
}

/// A figure with as many digits as it is sure of.
fn estimate(estimate: Option<Estimate>, scale: f64) -> Cell {
    let Some(Estimate { mean, half_width, runs }) = estimate else { return number("-") };
    let (mean, half_width) = (mean * scale, half_width * scale);
    let digits = if mean.abs() >= 100.0 { 1 } else { 3 };
    if runs < 2 || half_width < 0.5 * 10_f64.powi(-digits) {
        return number(format!("{mean:.*}", digits as usize));
    }
    number(format!("{mean:.*} ± {half_width:.*}", digits as usize, digits as usize))
}
