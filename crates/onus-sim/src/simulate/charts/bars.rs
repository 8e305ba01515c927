//! One bar for each policy.

use std::fmt::Write;

use super::axis::{Axis, label};
use super::{colour, escaped, frame};

pub(super) struct Bar<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    /// Half of the confidence interval.
    pub(super) half_width: f64,
}

const WIDTH: f64 = 860.0;
const LEFT: f64 = 330.0;
const RIGHT: f64 = 70.0;
const TOP: f64 = 40.0;
const ROW: f64 = 24.0;

pub(super) fn draw(title: &str, unit: &str, bars: &[Bar<'_>]) -> String {
    let axis = Axis::of(bars.iter().map(|bar| bar.value));
    let room = WIDTH - LEFT - RIGHT;
    let bottom = TOP + ROW * bars.len() as f64;
    let mut content = String::new();
    // Writing to a string cannot fail.
    for tick in axis.ticks() {
        let x = LEFT + room * axis.share(tick);
        let _ = writeln!(
            content,
            "<line class=\"g\" x1=\"{x:.1}\" y1=\"{TOP}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            bottom + 16.0,
            label(tick)
        );
    }
    for (index, bar) in bars.iter().enumerate() {
        let y = TOP + ROW * index as f64;
        let end = room * axis.share(bar.value);
        let least = LEFT + room * axis.share((bar.value - bar.half_width).max(0.0));
        let most = (LEFT + room * axis.share(bar.value + bar.half_width)).min(WIDTH - RIGHT + 20.0);
        let middle = y + ROW / 2.0;
        let _ = writeln!(
            content,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\
             <rect x=\"{LEFT}\" y=\"{}\" width=\"{:.1}\" height=\"{}\" fill=\"{}\"/>\
             <line class=\"a\" x1=\"{least:.1}\" y1=\"{middle}\" x2=\"{most:.1}\" y2=\"{middle}\"/>\
             <text x=\"{:.1}\" y=\"{}\">{}</text>",
            LEFT - 8.0,
            y + 16.0,
            escaped(bar.name),
            y + 4.0,
            end.max(1.0),
            ROW - 8.0,
            colour(0),
            most.max(LEFT + end) + 6.0,
            y + 16.0,
            label(bar.value)
        );
    }
    let _ = writeln!(
        content,
        "<text x=\"{LEFT}\" y=\"{}\">{}; the thin lines are 95 % intervals</text>",
        bottom + 36.0,
        escaped(unit)
    );
    frame(title, WIDTH, bottom + 50.0, &content)
}
