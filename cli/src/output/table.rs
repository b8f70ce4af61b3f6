//! Tables in Nomad's style: aligned columns, two spaces between, no borders.

use unicode_width::UnicodeWidthStr as _;

use super::{NONE, printable};

/// Rows under a header, each column as wide as its widest cell is on a terminal.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<'a>(header: impl IntoIterator<Item = &'a str>) -> Self {
        let header = header.into_iter().map(str::to_owned).collect();
        Self { rows: vec![header] }
    }

    /// Adds a row; an empty cell shows `<none>`.
    pub(crate) fn row<Cell: Into<String>>(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let shown = |cell: Cell| {
            let cell: String = cell.into();
            if cell.is_empty() {
                NONE.to_owned()
            } else {
                printable(&cell)
            }
        };
        self.rows.push(cells.into_iter().map(shown).collect());
    }

    /// Tells whether there are no rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Returns the table; every line ends with a newline, none with a space.
    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or_default();
        let mut widths = vec![0; columns];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = cell.width().max(*width);
            }
        }
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (width, cell) in widths.iter().zip(row) {
                line.push_str(cell);
                line.push_str(&" ".repeat(width - cell.width() + 2));
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["ID", "Node Pool", "Status"]);
        assert!(table.is_empty());
        table.row(["4d2ba53b", "", "ready"]);
        table.row(["größer-als", "x", "down"]);
        let expected = "\
ID          Node Pool  Status
4d2ba53b    <none>     ready
größer-als  x          down
";
        assert_eq!(table.render(), expected);
        assert!(!table.is_empty());
    }

    #[test]
    fn characters_of_two_columns_count_twice() {
        let mut table = Table::new(["ID", "Status"]);
        table.row(["日本", "ready"]);
        table.row(["abcd", "down"]);
        assert_eq!(table.render(), "ID    Status\n日本  ready\nabcd  down\n");
    }
}
