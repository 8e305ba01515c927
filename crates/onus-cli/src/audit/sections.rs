//! The parts of the result, for tables and for Markdown alike.

use onus_audit::{Api, RankedEdge, Retries, RetriesFrom};
use onus_retry_config::{Attempts, Place, Policy};

use super::Outcome;

/// A part: a title, and a table or lines.
pub(super) struct Section {
    pub(super) title: String,
    /// A sentence below the title; may be empty.
    pub(super) lead: String,
    /// Columns of numbers are set to the right.
    pub(super) header: Vec<(&'static str, Align)>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) lines: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

use Align::{Left, Right};

pub(super) fn headline(outcome: &Outcome) -> Vec<String> {
    let summary = &outcome.audit.summary;
    let mut read = Vec::new();
    if outcome.files > 0 {
        let policies = summary.policies;
        read.push(format!("{} with {}", many(outcome.files, "file"), many(policies, "policy")));
    }
    if let Some(metrics) = &outcome.metrics {
        match metrics.any() {
            true => read.push(format!(
                "metrics of {} over {}",
                metrics.sources().join(", "),
                outcome.window
            )),
            false => read.push("no series of a mesh".to_owned()),
        }
    }
    if let Some(traces) = &outcome.traces {
        read.push(many(traces.summary.traces as usize, "trace"));
    }
    if !outcome.graphs.edges.is_empty() || outcome.graphs.skipped() > 0 {
        read.push(format!("a graph of {}", many(outcome.graphs.edges.len(), "edge")));
    }
    let mut lines = vec![format!("Read: {}.", read.join("; "))];
    if summary.edges > 0 {
        lines.push(format!(
            "{} and {}: retries multiply on {} of them, {} without a budget, {} because nobody \
             told the mesh otherwise.",
            many(summary.services, "service"),
            many(summary.edges, "edge"),
            summary.retrying_edges,
            summary.without_budget,
            summary.by_default,
        ));
    }
    lines
}

pub(super) fn sections(outcome: &Outcome) -> Vec<Section> {
    let mut sections = Vec::new();
    let audit = &outcome.audit;
    if audit.storms.edges.is_empty() {
        sections.push(policies(outcome));
    } else {
        sections.push(apis(outcome));
        sections.push(edges(outcome));
        sections.push(gains(outcome));
    }
    sections.push(budgets(outcome));
    sections.push(writes(outcome));
    let mut unread = outcome.unread();
    let rest = unread.len().saturating_sub(TOLD);
    unread.truncate(TOLD);
    unread.extend((rest > 0).then(|| format!("and {rest} more, which `-o json` lists")));
    sections.push(lines("What could not be read", unread));
    let passed = &outcome.config.passed_over;
    let passed: Vec<_> = passed.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    let passed = match passed.is_empty() {
        true => None,
        false => Some(format!("without retries in them, and passed over: {}", passed.join(", "))),
    };
    sections.push(lines("Notes", audit.notes.iter().cloned().chain(passed).collect()));
    sections.retain(|section| !section.rows.is_empty() || !section.lines.is_empty());
    sections
}

fn lines(title: &str, lines: Vec<String>) -> Section {
    Section {
        title: title.to_owned(),
        lead: String::new(),
        header: Vec::new(),
        rows: Vec::new(),
        lines,
    }
}

fn apis(outcome: &Outcome) -> Section {
    let storms = &outcome.audit.storms;
    let row = |api: &Api| {
        let path = match api.unbounded_through.is_empty() {
            true => way(&api.path),
            false => format!("unbounded through {}", api.unbounded_through.join(", ")),
        };
        vec![
            api.service.clone(),
            api.radius.to_string(),
            factor(api.amplification),
            factor(api.amplification_budgeted),
            format!("{}, {}", api.radius_owned, factor(api.amplification_owned)),
            path,
        ]
    };
    let mean = |mean: Option<f64>| mean.map_or_else(|| "0".to_owned(), |mean| format!("{mean:.1}"));
    Section {
        title: "Storms, by where requests come in".to_owned(),
        lead: format!(
            "Radius: the most hops on a path that multiply when the last service fails; mean {}, \
             with ownership {}. Amplification: requests at it for one request here; budgeted: the same \
             on this path while everything fails and budgets bind; owned: radius and amplification \
             with ownership. A service recovers from overload by itself while its utilisation is \
             below 1/amplification. Several culprits at once, and callees that hang, may exceed \
             it.",
            mean(storms.mean_radius),
            mean(storms.mean_radius_owned),
        ),
        header: vec![
            ("requests come in at", Left),
            ("radius", Right),
            ("amplification", Right),
            ("budgeted", Right),
            ("owned", Right),
            ("worst path", Left),
        ],
        rows: storms.apis.iter().take(outcome.top).map(row).collect(),
        lines: Vec::new(),
    }
}

fn edges(outcome: &Outcome) -> Section {
    let row = |edge: &RankedEdge| {
        let facts = &edge.facts;
        let number = |number: Option<f64>, digits: usize| {
            number.map_or_else(String::new, |number| format!("{number:.digits$}"))
        };
        vec![
            facts.caller.clone(),
            facts.callee.clone(),
            attempts(&facts.retries),
            facts.retries.budget.map_or_else(String::new, |budget| format!("{} %", budget.percent)),
            number(facts.calls, 0),
            number(facts.failure_ratio.map(|ratio| ratio * 100.0), 2),
            number(facts.attempts_per_call, 3),
            facts.class.as_str().to_owned(),
            factor(edge.load),
            factor(edge.load_owned),
        ]
    };
    let ranked = &outcome.audit.storms.edges;
    Section {
        title: format!("The {} worst edges", outcome.top.min(ranked.len())),
        lead: "Attempts: the most requests of a call whose callee answers that it fails. Load: \
               requests that reach the callee over the edge for one where requests come in, while \
               it fails; owned: the same with ownership. Seen per call: what reached the callee, \
               on average."
            .to_owned(),
        header: vec![
            ("caller", Left),
            ("callee", Left),
            ("attempts", Left),
            ("budget", Left),
            ("calls", Right),
            ("failed %", Right),
            ("seen per call", Right),
            ("class", Left),
            ("load", Right),
            ("owned", Right),
        ],
        rows: ranked.iter().take(outcome.top).map(row).collect(),
        lines: Vec::new(),
    }
}

/// How often a call is tried, and who says so.
fn attempts(retries: &Retries) -> String {
    let more = if retries.or_more { " or more" } else { "" };
    let from = match retries.from {
        RetriesFrom::Configuration | RetriesFrom::Nothing => "",
        RetriesFrom::MeshDefault => ", by default",
        RetriesFrom::Metrics | RetriesFrom::Traces => ", as seen",
    };
    let connections =
        if retries.connections_only && retries.attempts < 2 { " (more to connect)" } else { "" };
    format!("{}{more}{from}{connections}", retries.attempts)
}

fn gains(outcome: &Outcome) -> Section {
    let storms = &outcome.audit.storms;
    let mut found = Vec::new();
    let worst = storms.apis.first().filter(|worst| worst.radius > 0);
    if let Some(worst) = worst {
        let (now, owned) = worst.at_culprit;
        found.push(format!(
            "enforced everywhere: radius {} instead of {}; when {} fails it gets {} the requests \
             instead of {}",
            worst.radius_owned,
            worst.radius,
            worst.path.last().map_or("the last service", String::as_str),
            factor(owned),
            factor(now),
        ));
        found.extend(storms.gains.iter().map(|gain| {
            format!("{}: radius {}, {}", gain.change, gain.radius, factor(gain.amplification))
        }));
    }
    let worst = worst.map_or("", |worst| worst.service.as_str());
    lines(&format!("What ownership would change for requests to {worst}"), found)
}

fn budgets(outcome: &Outcome) -> Section {
    let mut rows: Vec<Vec<String>> = outcome
        .config
        .budgets
        .iter()
        .map(|budget| vec![budget.callee.to_string(), budget.budget.to_string(), at(&budget.place)])
        .collect();
    let throttles = outcome.config.policies.iter().filter(|policy| policy.dialect.is_client());
    let throttles = throttles.filter_map(|policy| {
        let budget = policy.budget?.to_string();
        Some(vec![policy.callee.to_string(), budget, at(&policy.place)])
    });
    rows.extend(throttles);
    rows.truncate(outcome.top);
    Section {
        title: "Budgets".to_owned(),
        lead: String::new(),
        header: vec![("callee", Left), ("retries", Left), ("where", Left)],
        rows,
        lines: Vec::new(),
    }
}

fn writes(outcome: &Outcome) -> Section {
    let repeated = &outcome.audit.repeated_writes;
    let rows = repeated.iter().take(outcome.top).map(|it| {
        let short = |method: &String| method.rsplit('/').next().unwrap_or(method).to_owned();
        let methods: Vec<_> = it.methods.iter().map(short).collect();
        let methods = match methods.as_slice() {
            [one, two, three, rest @ ..] if !rest.is_empty() => {
                format!("{one}, {two}, {three} and {} more", rest.len())
            }
            methods => methods.join(", "),
        };
        let on = match it.conditions.is_empty() {
            true => "whatever is implemented".to_owned(),
            false => it.conditions.join(", "),
        };
        vec![it.callee.clone(), it.route.clone(), methods, on, it.attempts.clone(), at(&it.place)]
    });
    let rest = repeated.len().saturating_sub(outcome.top);
    Section {
        title: "Retried though not idempotent".to_owned(),
        lead: "Calls that may have been processed when they are sent again. Methods of gRPC are \
               judged by their names."
            .to_owned(),
        header: vec![
            ("callee", Left),
            ("route", Left),
            ("methods", Left),
            ("retried on", Left),
            ("attempts", Right),
            ("where", Left),
        ],
        rows: rows.collect(),
        lines: if rest > 0 { vec![format!("and {rest} more routes")] } else { Vec::new() },
    }
}

fn policies(outcome: &Outcome) -> Section {
    let mut policies: Vec<&Policy> = outcome.config.policies.iter().collect();
    policies.extend(&outcome.config.istio_default);
    policies.sort_by_key(|policy| {
        std::cmp::Reverse(match policy.attempts {
            Attempts::AtMost(most) => most,
            Attempts::WhileBudgetPays => u32::MAX,
        })
    });
    let rest = policies.len().saturating_sub(outcome.top);
    let row = |policy: &&Policy| {
        let on = policy.conditions.iter().map(ToString::to_string).collect::<Vec<_>>();
        let time = |time: Option<std::time::Duration>| {
            time.map_or_else(String::new, |time| format!("{} s", time.as_secs_f64()))
        };
        let default = if policy.by_default { ", by default" } else { "" };
        vec![
            policy.dialect.as_str().to_owned(),
            policy.callee.to_string(),
            policy.route.label.clone(),
            format!("{}{default}", policy.attempts),
            on.join(", "),
            time(policy.per_try_timeout),
            time(policy.timeout),
            policy.budget.map_or_else(|| "none".to_owned(), |budget| budget.to_string()),
        ]
    };
    Section {
        title: "Policies, most attempts first".to_owned(),
        lead: String::new(),
        header: vec![
            ("of", Left),
            ("callee", Left),
            ("route", Left),
            ("attempts", Left),
            ("retried on", Left),
            ("per try", Right),
            ("in all", Right),
            ("budget", Left),
        ],
        rows: policies.iter().take(outcome.top).map(row).collect(),
        lines: if rest > 0 { vec![format!("and {rest} more")] } else { Vec::new() },
    }
}

/// A path; of a long one both ends.
fn way(path: &[String]) -> String {
    const ENDS: usize = 4;
    match path.len().checked_sub(2 * ENDS) {
        None | Some(0 | 1) => path.join(" → "),
        Some(between) => format!(
            "{} → {between} more → {}",
            path[..ENDS].join(" → "),
            path[path.len() - ENDS..].join(" → ")
        ),
    }
}

/// Enough to find it; the rest is in the object's way.
fn at(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}

fn factor(factor: f64) -> String {
    match factor {
        _ if !factor.is_finite() => "unlimited".to_owned(),
        // Nobody gets so many; how many more says nothing.
        _ if factor > 1e6 => "over 1000000\u{d7}".to_owned(),
        _ if factor.fract() == 0.0 => format!("{factor:.0}\u{d7}"),
        _ => format!("{factor:.2}\u{d7}"),
    }
}

fn many(count: usize, what: &str) -> String {
    match (count, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {what}s"),
    }
}

/// More lines about what could not be read are no reading any more.
const TOLD: usize = 30;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_path_is_its_ends() {
        let path = |length: usize| (1..=length).map(|at| at.to_string()).collect::<Vec<_>>();
        for (length, expected) in [
            (1, "1"),
            (3, "1 → 2 → 3"),
            (9, "1 → 2 → 3 → 4 → 5 → 6 → 7 → 8 → 9"),
            (677, "1 → 2 → 3 → 4 → 669 more → 674 → 675 → 676 → 677"),
        ] {
            assert_eq!(way(&path(length)), expected);
        }
    }

    #[test]
    fn a_factor_is_as_exact_as_people_need() {
        for (number, expected) in [
            (1.0, "1×"),
            (1.25, "1.25×"),
            (162.0, "162×"),
            (1e7, "over 1000000×"),
            (f64::INFINITY, "unlimited"),
        ] {
            assert_eq!(factor(number), expected);
        }
    }
}
