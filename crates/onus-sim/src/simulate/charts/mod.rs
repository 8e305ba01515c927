//! Charts of an experiment, as SVG that reads well on light and on dark paper.

mod axis;
mod bars;
mod lines;

use std::fmt::Write;

use super::experiment::Experiment;
use super::outcome::{Estimate, Outcome};
use bars::Bar;
use lines::{Line, Lines};

/// A chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chart {
    /// The name of its file.
    pub file: &'static str,
    /// Its text.
    pub svg: String,
}

/// The charts that make sense for an experiment.
#[must_use]
pub fn charts(experiment: &Experiment) -> Vec<Chart> {
    let mut charts = Vec::new();
    let mut add = |file, svg: Option<String>| charts.extend(svg.map(|svg| Chart { file, svg }));
    match experiment.parameter {
        Some(parameter) => add("sweep.svg", sweep(experiment, parameter)),
        None => {
            add("policies.svg", policies(experiment));
            add("depth.svg", depth(experiment));
            add("goodput.svg", goodput(experiment));
        }
    }
    charts
}

/// The load that policies are compared by: of the bad keys, where there are some.
fn load(outcome: &Outcome) -> Option<Estimate> {
    outcome.bad_keys.and_then(|bad| bad.load_factor).or(outcome.load_factor)
}

fn policies(experiment: &Experiment) -> Option<String> {
    let bars = experiment.outcomes.iter().filter_map(|outcome| {
        let Estimate { mean, half_width, .. } = load(outcome)?;
        Some(Bar { name: &outcome.policy, value: mean, half_width })
    });
    let bars: Vec<_> = bars.collect();
    let title = format!("{}: load of the failing service", experiment.scenario);
    (!bars.is_empty()).then(|| bars::draw(&title, "requests for each without retries", &bars))
}

fn depth(experiment: &Experiment) -> Option<String> {
    let first = experiment.outcomes.first()?;
    // A chain reads from left to right; of other graphs the order says nothing.
    let is_chain = (0..).zip(&first.services).all(|(depth, service)| service.depth == depth);
    let series = experiment.outcomes.iter().map(|outcome| Line {
        name: &outcome.policy,
        points: (0..)
            .zip(&outcome.services)
            .map(|(depth, service)| (f64::from(depth), service.per_request.mean))
            .collect(),
    });
    let ticks = (0..).zip(&first.services);
    let lines = Lines {
        title: format!("{}: load per depth", experiment.scenario),
        x: "service".to_owned(),
        y: "requests for one from outside",
        ticks: ticks.map(|(depth, service)| (f64::from(depth), service.name.clone())).collect(),
        series: series.collect(),
        shade: None,
    };
    (is_chain && first.services.len() > 1).then(|| lines.draw())
}

fn goodput(experiment: &Experiment) -> Option<String> {
    let first = experiment.outcomes.first()?;
    let outage = first.outage_s?;
    // Requests stop coming before the last of them are answered.
    let last = first.seconds.iter().rposition(|second| second.arrivals > 0.0)?;
    let series = experiment.outcomes.iter().map(|outcome| Line {
        name: &outcome.policy,
        points: (0..)
            .zip(outcome.seconds.iter().take(last))
            .map(|(second, counts)| (f64::from(second), counts.ok))
            .collect(),
    });
    let lines = Lines {
        title: format!("{}: goodput", experiment.scenario),
        x: "second in which a request came; grey: the outage".to_owned(),
        y: "answers without an error",
        ticks: (0..=last).step_by((last / 10).max(1)).map(|s| (s as f64, s.to_string())).collect(),
        series: series.collect(),
        shade: Some(outage),
    };
    Some(lines.draw())
}

fn sweep(experiment: &Experiment, parameter: &str) -> Option<String> {
    let mut series: Vec<Line<'_>> = Vec::new();
    let mut ticks: Vec<(f64, String)> = Vec::new();
    for outcome in &experiment.outcomes {
        let (Some(value), Some(load)) = (outcome.value, load(outcome)) else { continue };
        if ticks.iter().all(|(known, _)| *known != value) {
            ticks.push((value, value.to_string()));
        }
        match series.iter_mut().find(|line| line.name == outcome.policy) {
            Some(line) => line.points.push((value, load.mean)),
            None => series.push(Line { name: &outcome.policy, points: vec![(value, load.mean)] }),
        }
    }
    let lines = Lines {
        title: format!("{}: load of the failing service by {parameter}", experiment.scenario),
        x: parameter.to_owned(),
        y: "requests for each without retries",
        ticks,
        series,
        shade: None,
    };
    (lines.ticks.len() > 1).then(|| lines.draw())
}

/// The frame of a chart. Text and axes take the colour of the page's text.
fn frame(title: &str, width: f64, height: f64, content: &str) -> String {
    let title = escaped(title);
    let mut svg = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
         font-family=\"sans-serif\" font-size=\"12\" role=\"img\">\n<title>{title}</title>\n\
         <style>text{{fill:#222}}.a{{stroke:#888}}.g{{stroke:#8884}}.s{{fill:#8883}}\
         @media(prefers-color-scheme:dark){{text{{fill:#ddd}}}}</style>\n\
         <text x=\"16\" y=\"22\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n\
         {content}</svg>\n"
    );
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Colours of middle lightness, which stand out from white and from black.
fn colour(index: usize) -> &'static str {
    const COLOURS: [&str; 8] =
        ["#4c8ed9", "#d9623b", "#3a9d5d", "#a56fd0", "#c2921d", "#d0568f", "#2d9fa8", "#8a8a8a"];
    COLOURS[index % COLOURS.len()]
}
