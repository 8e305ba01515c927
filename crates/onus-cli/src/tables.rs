//! How tables look.

use comfy_table::{Cell, CellAlignment, Table, presets};

/// An empty table.
pub(crate) fn new_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table
}

/// A cell with a figure.
pub(crate) fn number(value: impl ToString) -> Cell {
    Cell::new(value).set_alignment(CellAlignment::Right)
}
