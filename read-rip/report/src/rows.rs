//! Tables in which numbers stand below one another, before the names that they belong to.
//!
//! Names have any length, so they come last: a narrow terminal breaks them, and the numbers stay in their columns.

use std::io::{self, Write};

use comfy_table::{Cell, CellAlignment, Table};

use crate::printable;

/// A table of so many numbers and names a row.
pub(super) struct Rows<const NUMBERS: usize, const NAMES: usize>(Table);

impl<const NUMBERS: usize, const NAMES: usize> Rows<NUMBERS, NAMES> {
    pub(super) fn new(numbers: [&str; NUMBERS], names: [&str; NAMES]) -> Self {
        let mut table = Table::new();
        table.load_style(comfy_table::presets::NOTHING);
        let numbers = numbers.map(|of| Cell::new(of).set_alignment(CellAlignment::Right));
        table.set_header(numbers.into_iter().chain(names.map(Cell::new)));
        Rows(table)
    }

    /// Adds a row. The names may be of any origin.
    pub(super) fn add(&mut self, numbers: [String; NUMBERS], names: [String; NAMES]) {
        let numbers = numbers.map(|of| Cell::new(of).set_alignment(CellAlignment::Right));
        self.0.add_row(numbers.into_iter().chain(names.map(|of| Cell::new(printable(&of)))));
    }

    /// # Errors
    ///
    /// Those of `out`.
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        // Columns are two spaces apart.
        self.0
            .lines()
            .try_for_each(|line| writeln!(out, "{}", line.strip_prefix(' ').unwrap_or(&line).trim_end()))
    }
}
