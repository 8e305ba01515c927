//! Tables for people.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// An empty table with lines.
pub(crate) fn lined() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table
}

/// A cell with a figure.
pub(crate) fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}

/// A table without lines; a column whose head begins with `>` is for numbers.
pub(crate) fn render<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let is_number = header.map(|head| head.starts_with('>'));
    let cell = |text: &str, is_number: bool| {
        if is_number { number(text) } else { Cell::new(text) }
    };
    table.set_header(
        header.iter().zip(is_number).map(|(head, it)| cell(head.trim_start_matches('>'), it)),
    );
    for row in rows {
        table.add_row(row.iter().zip(is_number).map(|(text, it)| cell(text, it)));
    }
    let lines = table.lines().map(|line| format!("{}\n", line.trim_end()));
    lines.collect()
}

/// A time in its largest fitting unit.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        172_800.. => format!("{}d", seconds / 86_400),
    }
}
