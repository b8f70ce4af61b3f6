//! Blocks of fields: a key, ` = `, a value, one a line. Only values added as text span several lines.

use unicode_width::UnicodeWidthStr as _;

use super::{NONE, printable};

/// Fields in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    fields: Vec<(String, String)>,
}

impl Fields {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a field; an empty value shows `<none>`.
    pub(crate) fn add(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        let value: String = value.into();
        let shown = if value.is_empty() {
            NONE.to_owned()
        } else {
            printable(&value)
        };
        self.fields.push((printable(key), shown));
        self
    }

    /// Adds a field whose value keeps its lines: all but the first are indented below the first, so that no
    /// line looks like another field.
    pub(crate) fn add_text(&mut self, key: &str, value: &str) -> &mut Self {
        let lines: Vec<String> = value.trim_end().lines().map(printable).collect();
        match &*lines {
            [] => self.add(key, ""),
            _ => {
                self.fields.push((printable(key), lines.join("\n")));
                self
            }
        }
    }

    /// Adds a field unless its value is empty.
    pub(crate) fn add_some(&mut self, key: &str, value: impl Into<String>) -> &mut Self {
        let value: String = value.into();
        if !value.is_empty() {
            self.add(key, value);
        }
        self
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Returns the block; every line ends with a newline.
    pub(crate) fn render(&self) -> String {
        let width = |(key, _): &(String, String)| key.width();
        let widest = self.fields.iter().map(width).max().unwrap_or_default();
        let mut out = String::new();
        for (key, value) in &self.fields {
            out.push_str(key);
            out.push_str(&" ".repeat(widest - key.width()));
            out.push_str(" = ");
            for (position, line) in value.split('\n').enumerate() {
                if position > 0 && !line.is_empty() {
                    out.push_str(&" ".repeat(widest + 3));
                }
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_aligned_and_nothing_shows_as_none() {
        let mut fields = Fields::new();
        assert!(fields.is_empty());
        fields
            .add("ID", "web")
            .add("Submit Date", "")
            .add_some("Canary", "");
        assert_eq!(fields.render(), "ID          = web\nSubmit Date = <none>\n");
    }

    #[test]
    fn lines_of_a_text_are_indented_and_no_field_of_their_own() {
        let mut fields = Fields::new();
        fields
            .add_text("Output", "down\r\n\nStatus = \x1b[2Jsuccess\n\n")
            .add_text("Rest", "\n")
            .add("Name", "a\nb");
        let expected = "\
Output = down

         Status = \u{fffd}[2Jsuccess
Rest   = <none>
Name   = a\u{fffd}b
";
        assert_eq!(fields.render(), expected);
    }
}
