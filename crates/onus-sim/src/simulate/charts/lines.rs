//! One line for each policy.

use std::fmt::Write;

use super::axis::{Axis, label};
use super::{colour, escaped, frame};

pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) points: Vec<(f64, f64)>,
}

pub(super) struct Lines<'a> {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: &'static str,
    /// Places along the lower edge with their labels.
    pub(super) ticks: Vec<(f64, String)>,
    pub(super) series: Vec<Line<'a>>,
    /// A span of the lower edge that is grey.
    pub(super) shade: Option<(f64, f64)>,
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 310.0;
const TOP: f64 = 56.0;
const DEEP: f64 = 320.0;
const LEGEND: f64 = 20.0;

impl Lines<'_> {
    pub(super) fn draw(&self) -> String {
        let points = || self.series.iter().flat_map(|line| line.points.iter());
        let axis = Axis::of(points().map(|(_, y)| *y));
        let places = points().map(|(x, _)| *x).chain(self.ticks.iter().map(|(x, _)| *x));
        let least = places.clone().fold(f64::MAX, f64::min);
        let span = (places.fold(f64::MIN, f64::max) - least).max(f64::MIN_POSITIVE);
        let (room, bottom) = (WIDTH - LEFT - RIGHT, TOP + DEEP);
        let right = LEFT + room;
        let x_of = |x: f64| LEFT + room * ((x - least) / span).clamp(0.0, 1.0);
        let y_of = |y: f64| bottom - DEEP * axis.share(y);
        let mut content = String::new();
        // Writing to a string cannot fail.
        if let Some((from, to)) = self.shade {
            let (from, to) = (x_of(from), x_of(to));
            let _ = writeln!(
                content,
                "<rect class=\"s\" x=\"{from:.1}\" y=\"{TOP}\" width=\"{:.1}\" height=\"{DEEP}\"/>",
                to - from
            );
        }
        for tick in axis.ticks() {
            let y = y_of(tick);
            let _ = writeln!(
                content,
                "<line class=\"g\" x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{right}\" y2=\"{y:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                y + 4.0,
                label(tick)
            );
        }
        for (x, text) in &self.ticks {
            let _ = writeln!(
                content,
                "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                x_of(*x),
                bottom + 18.0,
                escaped(text)
            );
        }
        for (index, line) in self.series.iter().enumerate() {
            let colour = colour(index);
            // Colours repeat after eight policies; then dashes tell the lines apart.
            let dash = if index >= 8 { " stroke-dasharray=\"6 4\"" } else { "" };
            let path: Vec<_> = line
                .points
                .iter()
                .map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y)))
                .collect();
            let y = TOP + LEGEND * index as f64;
            let _ = writeln!(
                content,
                "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"{dash} \
                 points=\"{}\"/><line stroke=\"{colour}\" stroke-width=\"3\"{dash} x1=\"{}\" \
                 y1=\"{y}\" x2=\"{}\" y2=\"{y}\"/><text x=\"{}\" y=\"{}\">{}</text>",
                path.join(" "),
                right + 16.0,
                right + 42.0,
                right + 50.0,
                y + 4.0,
                escaped(line.name)
            );
        }
        let low = (bottom + 44.0).max(TOP + LEGEND * self.series.len() as f64);
        let _ = writeln!(
            content,
            "<text x=\"{LEFT}\" y=\"42\">{}</text><text x=\"{LEFT}\" y=\"{}\">{}</text>",
            escaped(self.y),
            bottom + 38.0,
            escaped(&self.x)
        );
        frame(&self.title, WIDTH, low + 10.0, &content)
    }
}
