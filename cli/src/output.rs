//! Building blocks of output: tables, fields, times, sizes, colours, JSON.
//!
//! Everything but [`printer`] is pure: values in, text out.

pub(crate) mod colour;
pub(crate) mod fields;
pub(crate) mod id;
pub(crate) mod json;
pub(crate) mod printer;
pub(crate) mod shell;
pub(crate) mod size;
pub(crate) mod table;
pub(crate) mod template;
pub(crate) mod time;

/// The text for an absent value.
pub(crate) const NONE: &str = "<none>";

/// Returns `text` with its control characters replaced: names and messages are untrusted.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

/// Returns `text` with every line that is not empty moved to the right.
pub(crate) fn indented(text: &str, spaces: usize) -> String {
    let margin = " ".repeat(spaces);
    let mut out = String::with_capacity(text.len() + spaces * 8);
    for line in text.lines() {
        if !line.is_empty() {
            out.push_str(&margin);
            out.push_str(line);
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_elsewhere_reaches_the_terminal_as_a_command() {
        assert_eq!(printable("web\x1b[2J\n"), "web\u{fffd}[2J\u{fffd}");
    }

    #[test]
    fn empty_lines_stay_empty() {
        assert_eq!(indented("a\n\nb", 2), "  a\n\n  b\n");
    }
}
