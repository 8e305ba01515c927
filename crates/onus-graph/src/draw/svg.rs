//! As SVG that needs nothing else, and reads well on light and on dark screens.

use std::fmt::Write;

use onus_learn::MeasuredClass;

use super::layout::Layout;
use super::{CLASSES, Drawing, Line, paint};

impl Drawing {
    /// The picture as SVG.
    #[must_use]
    pub fn svg(&self) -> String {
        let layout = Layout::of(self.services.len(), &self.lines);
        let width = (PITCH_X * layout.columns as f64 - GAP + 2.0 * MARGIN).max(MIN_WIDTH);
        let height = PITCH_Y * layout.rows as f64 + HEAD + MARGIN;
        let middle = HEAD + PITCH_Y * layout.rows as f64 / 2.0;
        let mut svg = self.frame(width, height);
        for (line, between) in self.lines.iter().zip(&layout.between) {
            draw_line(&mut svg, line, &layout, between, middle);
        }
        for (name, &(column, row)) in self.services.iter().zip(&layout.places) {
            let (x, y) = (MARGIN + PITCH_X * column as f64, middle + PITCH_Y * row);
            // Writing to a string cannot fail.
            let _ = writeln!(
                svg,
                "<g><title>{}</title><rect class=\"s\" x=\"{x}\" y=\"{}\" width=\"{BOX_X}\" \
                 height=\"{BOX_Y}\" rx=\"4\"/><text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}\
                 </text></g>",
                escaped(name),
                y - BOX_Y / 2.0,
                x + BOX_X / 2.0,
                y + 4.0,
                escaped(&shortened(name)),
            );
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Everything but services and lines.
    fn frame(&self, width: f64, height: f64) -> String {
        let title = escaped(&self.title);
        let mut svg = String::new();
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" \
             role=\"img\">\n<title>{title}</title>\n<style>.p{{fill:#fff}}.s{{fill:#f2f2f2;\
             stroke:#888}}text{{fill:#222}}.l{{font-size:10px;paint-order:stroke;stroke:#fff;\
             stroke-width:3px}}path{{fill:none}}@media(prefers-color-scheme:dark){{\
             .p{{fill:#16181c}}.s{{fill:#24272d}}text{{fill:#ddd}}.l{{stroke:#16181c}}}}</style>\n\
             <defs>"
        );
        for class in CLASSES {
            let (_, colour) = paint(class);
            let _ = write!(
                svg,
                "<marker id=\"{class}\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" \
                 markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" \
                 orient=\"auto\"><path d=\"M0 0L8 4L0 8z\" style=\"fill:{colour}\"/></marker>"
            );
        }
        let _ = write!(
            svg,
            "</defs>\n<rect class=\"p\" width=\"{width}\" height=\"{height}\"/>\n\
             <text x=\"{MARGIN}\" y=\"28\" font-size=\"15\" font-weight=\"bold\">{title}</text>\n"
        );
        let mut x = MARGIN;
        for class in CLASSES {
            let (text, colour) = paint(class);
            let _ = writeln!(
                svg,
                "<path d=\"M{x} 46h24\" stroke=\"{colour}\" stroke-width=\"2\"{}/>\
                 <text x=\"{}\" y=\"50\">{text}</text>",
                dashes(class),
                x + 30.0
            );
            x += LEGEND;
        }
        if self.lines.iter().any(|line| line.on_way) {
            let _ =
                writeln!(svg, "<text x=\"{x}\" y=\"50\">thick: the longest way of a storm</text>");
        }
        let (services, edges) = self.left_out;
        if services + edges > 0 {
            let _ = writeln!(
                svg,
                "<text x=\"{MARGIN}\" y=\"68\">{edges} more edges and {services} more services had \
                 no room.</text>"
            );
        }
        svg
    }
}

/// A line from the right side of its caller to the left side of its callee, level at both.
fn draw_line(
    svg: &mut String,
    line: &Line,
    layout: &Layout,
    between: &[(usize, f64)],
    middle: f64,
) {
    let left = |column: usize| MARGIN + PITCH_X * column as f64;
    let y = |row: f64| middle + PITCH_Y * row;
    let (from, to) = (layout.places[line.caller], layout.places[line.callee]);
    let mut pen = Pen::at(left(from.0) + BOX_X, y(from.1));
    for &(column, row) in between {
        pen.bend(left(column), y(row));
        pen.level(BOX_X);
    }
    pen.bend(left(to.0), y(to.1));
    let class = line.look.class;
    let (_, colour) = paint(class);
    // Writing to a string cannot fail.
    let _ = writeln!(
        svg,
        "<path d=\"{}\" stroke=\"{colour}\" stroke-width=\"{}\" marker-end=\"url(#{class})\"{}/>",
        pen.path,
        if line.on_way { 3 } else { 1 },
        dashes(class),
    );
    if !line.look.label.is_empty() {
        let (x, y) = pen.label;
        let _ = writeln!(
            svg,
            "<text class=\"l\" x=\"{x}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            y - 3.0,
            escaped(&line.look.label)
        );
    }
}

/// A path under the pen.
struct Pen {
    path: String,
    x: f64,
    y: f64,
    /// The middle of the last bend.
    label: (f64, f64),
}

impl Pen {
    fn at(x: f64, y: f64) -> Self {
        Self { path: format!("M{x} {y}"), x, y, label: (x, y) }
    }

    fn bend(&mut self, x: f64, y: f64) {
        let reach = ((x - self.x) / 2.0).max(GAP / 2.0);
        let (from, to) = (self.x + reach, x - reach);
        // Writing to a string cannot fail.
        let _ = write!(self.path, "C{from} {} {to} {y} {x} {y}", self.y);
        self.label = (f64::midpoint(self.x, x), f64::midpoint(self.y, y));
        (self.x, self.y) = (x, y);
    }

    fn level(&mut self, length: f64) {
        let _ = write!(self.path, "h{length}");
        self.x += length;
    }
}

/// Colour alone does not tell the classes apart for everybody.
fn dashes(class: MeasuredClass) -> &'static str {
    match class {
        MeasuredClass::FailOpen => " stroke-dasharray=\"6 4\"",
        MeasuredClass::NoData => " stroke-dasharray=\"2 3\"",
        MeasuredClass::FailClose | MeasuredClass::Unknown => "",
    }
}

/// A name that fits into its box; of a longer one the ends, which tell names apart.
fn shortened(name: &str) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= FITS {
        return name.to_owned();
    }
    let (start, end) = (&characters[..FITS / 2], &characters[characters.len() + 1 - FITS / 2..]);
    start.iter().chain(['\u{2026}'].iter()).chain(end).collect()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

const BOX_X: f64 = 156.0;
const BOX_Y: f64 = 26.0;
const GAP: f64 = 104.0;
const PITCH_X: f64 = BOX_X + GAP;
const PITCH_Y: f64 = 42.0;
const MARGIN: f64 = 20.0;
/// Title and legend.
const HEAD: f64 = 86.0;
/// An entry of the legend, and five of them.
const LEGEND: f64 = 222.0;
const MIN_WIDTH: f64 = 1120.0;
/// Characters.
const FITS: usize = 22;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::tests::example;

    #[test]
    fn stands_alone_and_shows_everything() {
        let svg = example(9).svg();
        for part in [
            "<title>Calls &amp; storms</title>",
            "<title>A &lt;&quot;1&quot;&gt;</title>",
            ">P 0.90 &amp; more</text>",
            "prefers-color-scheme:dark",
            "stroke-width=\"3\" marker-end=\"url(#unknown)\"",
            "marker-end=\"url(#fail-open)\" stroke-dasharray",
        ] {
            assert!(svg.contains(part), "{part} in\n{svg}");
        }
        assert_eq!(svg.matches("<rect class=\"s\"").count(), 5);
        // Nothing is fetched, and every element ends.
        assert_eq!(svg.matches("http").count(), 1, "only the name of the language");
        assert_eq!(svg.matches("<g>").count(), svg.matches("</g>").count());
        assert!(!svg.contains("had no room"));
        assert!(example(2).svg().contains("1 more edges and 2 more services had no room."));
    }

    #[test]
    fn a_long_name_keeps_its_ends() {
        for (name, expected) in [
            ("short", "short"),
            ("exactly-22-characters-", "exactly-22-characters-"),
            ("ts-preserve-other-service-v2", "ts-preserve\u{2026}service-v2"),
        ] {
            assert_eq!(shortened(name), expected);
        }
    }
}
