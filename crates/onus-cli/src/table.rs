//! Tables for people: no lines, columns by their width, numbers to the right.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// A table; a column whose head begins with `>` is for numbers.
pub(crate) fn render<const N: usize>(
    header: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let is_number = header.map(|head| head.starts_with('>'));
    let cell = |text: &str, is_number: bool| {
        let cell = Cell::new(text);
        if is_number { cell.set_alignment(CellAlignment::Right) } else { cell }
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
