//! The result for a review.

use std::fmt::Write;

use super::Outcome;
use super::sections::{self, Align, Section};

pub(super) fn render(outcome: &Outcome) -> String {
    let mut text = "# Retries in this mesh\n\n".to_owned();
    text.push_str(&sections::headline(outcome).join("\n"));
    text.push('\n');
    for section in sections::sections(outcome) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n## {}\n", section.title);
        if !section.lead.is_empty() {
            let _ = writeln!(text, "{}\n", section.lead);
        }
        if !section.rows.is_empty() {
            table(&mut text, &section);
        }
        if !section.lines.is_empty() && !section.rows.is_empty() {
            text.push('\n');
        }
        for line in &section.lines {
            let _ = writeln!(text, "- {}", escaped(line));
        }
    }
    text
}

fn table(text: &mut String, section: &Section) {
    let mut row = |cells: Vec<String>| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    row(section.header.iter().map(|(title, _)| (*title).to_owned()).collect());
    let rule = |align| match align {
        Align::Left => "---",
        Align::Right => "---:",
    };
    row(section.header.iter().map(|(_, align)| rule(*align).to_owned()).collect());
    for cells in &section.rows {
        row(cells.iter().map(|cell| escaped(cell)).collect());
    }
}

/// What is written in a configuration neither ends a cell nor becomes an element of the page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for at in text.chars() {
        match at {
            '|' | '*' | '_' | '`' | '<' | '[' | '\\' | '#' => escaped.extend(['\\', at]),
            '\n' | '\r' => escaped.push(' '),
            _ => escaped.push(at),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_in_its_cell() {
        for (text, expected) in [
            ("shop", "shop"),
            ("a|b", "a\\|b"),
            ("<script>", "\\<script>"),
            ("/api/*", "/api/\\*"),
            ("a\nb", "a b"),
        ] {
            assert_eq!(escaped(text), expected);
        }
    }
}
