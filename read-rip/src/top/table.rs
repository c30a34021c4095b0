//! Columns of text: how wide each is, and how a row is cut to the width of the screen.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

/// A column: its heading and its width; the last one takes what is left.
pub(super) struct Column {
    pub(super) heading: &'static str,
    pub(super) width: u16,
    pub(super) is_number: bool,
}

/// Writes the cells of a row on a line. Columns that do not fit are left out.
pub(super) fn row(buffer: &mut Buffer, line: Rect, columns: &[Column], cells: &[String], style: Style) {
    buffer.set_style(line, style);
    let mut x = line.x;
    for (at, (column, cell)) in columns.iter().zip(cells).enumerate() {
        let left = line.right().saturating_sub(x);
        let width = if at + 1 == columns.len() { left } else { column.width.min(left) };
        let text = match column.is_number {
            true => format!("{cell:>0$}", usize::from(width)),
            false => cell.clone(),
        };
        buffer.set_stringn(x, line.y, text, usize::from(width), style);
        x = x.saturating_add(width).saturating_add(1).min(line.right());
    }
}

pub(super) fn headings(buffer: &mut Buffer, line: Rect, columns: &[Column], style: Style) {
    let cells: Vec<String> = columns.iter().map(|column| column.heading.to_owned()).collect();
    row(buffer, line, columns, &cells, style);
}
