//! The result for people.

use std::fmt::Write;

use comfy_table::{Cell, ContentArrangement, Table};

use super::Outcome;
use super::sections::{self, Align, Section};
use crate::table::{lined, number};

pub(super) fn render(outcome: &Outcome) -> String {
    let mut text = sections::headline(outcome).iter().map(|line| wrapped(line)).collect::<String>();
    for section in sections::sections(outcome) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\n{}", section.title);
        if !section.lead.is_empty() {
            text.push_str(&wrapped(&section.lead));
        }
        if !section.rows.is_empty() {
            let _ = writeln!(text, "{}", table(&section));
        }
        for line in &section.lines {
            let _ = writeln!(text, "  - {line}");
        }
    }
    text
}

/// Lines that people can read.
fn wrapped(text: &str) -> String {
    let mut wrapped = String::new();
    let mut width = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if width > 0 && width + 1 + length > WIDTH {
            wrapped.push('\n');
            width = 0;
        } else if width > 0 {
            wrapped.push(' ');
            width += 1;
        }
        wrapped.push_str(word);
        width += length;
    }
    wrapped + "\n"
}

const WIDTH: usize = 100;

fn table(section: &Section) -> Table {
    let mut table = lined();
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let cell = |text: &str, align: Align| match align {
        Align::Left => Cell::new(text),
        Align::Right => number(text),
    };
    table.set_header(section.header.iter().map(|(title, align)| cell(title, *align)));
    for row in &section.rows {
        let aligned = row.iter().zip(&section.header);
        table.add_row(aligned.map(|(text, (_, align))| cell(text, *align)));
    }
    table
}
