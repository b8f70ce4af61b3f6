//! Errors of a file: position, snippet with a caret, and message.

use std::fmt::{self, Write};
use std::ops::Range;

/// One error of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The name that the caller gave the text.
    pub file: String,
    /// Lines and columns count from 1, columns in characters; the end is past the last one.
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
    /// The kind of error, for example `Unsupported argument`.
    pub summary: String,
    /// The details and the remedy.
    pub detail: String,
    /// The line, or a window of a long line.
    pub snippet: String,
    /// The characters of the snippet to underline.
    pub caret: Range<usize>,
}

/// Colours of rendered errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Never,
    Always,
}

/// All errors of a file, in the order of detection; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseErrors(pub Vec<ParseError>);

impl std::error::Error for ParseError {}
impl std::error::Error for ParseErrors {}

impl ParseError {
    /// Returns the error in one line, in Nomad's format: `web.hcl:12,7-13: Unsupported argument; An
    /// argument …`.
    pub fn one_line(&self) -> String {
        let end = if self.end_line == self.line {
            self.end_column.to_string()
        } else {
            format!("{},{}", self.end_line, self.end_column)
        };
        let place = format!("{}:{},{}-{end}", self.file, self.line, self.column);
        format!("{place}: {}; {}", self.summary, self.detail)
    }

    /// Returns the error with its line and a caret under the place; ends with a newline.
    pub fn render(&self, colour: Colour) -> String {
        let (red, bold, blue, reset) = match colour {
            Colour::Never => ("", "", "", ""),
            Colour::Always => ("\x1b[31m", "\x1b[1m", "\x1b[34m", "\x1b[0m"),
        };
        let mut text = String::new();
        let margin = " ".repeat(self.line.to_string().len());
        let (pad, carets) = self.underline();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{red}error{reset}{bold}: {}{reset}", self.summary);
        let _ = writeln!(
            text,
            "{margin}{blue}-->{reset} {}:{}:{}",
            printable(&self.file),
            self.line,
            self.column,
        );
        let _ = writeln!(text, "{margin} {blue}|{reset}");
        let _ = writeln!(
            text,
            "{blue}{} |{reset} {}",
            self.line,
            printable(&self.snippet)
        );
        let _ = writeln!(text, "{margin} {blue}|{reset} {pad}{red}{carets}{reset}");
        let _ = writeln!(text, "{margin} {blue}={reset} {}", printable(&self.detail));
        text
    }

    /// Returns the indentation, with the tabs of the line, and the carets.
    fn underline(&self) -> (String, String) {
        let before = self.snippet.chars().take(self.caret.start);
        let pad = before.map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        (pad, "^".repeat(self.caret.len().max(1)))
    }
}

/// Replaces control characters, which a terminal would interpret.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Colour::Never).trim_end())
    }
}

impl ParseErrors {
    /// Returns all errors with their lines and carets, a blank line between them.
    pub fn render(&self, colour: Colour) -> String {
        let rendered: Vec<String> = self.0.iter().map(|error| error.render(colour)).collect();
        rendered.join("\n")
    }

    /// Returns all errors in Nomad's format, one a line.
    pub fn one_line_each(&self) -> String {
        let lines: Vec<String> = self.0.iter().map(ParseError::one_line).collect();
        lines.join("\n")
    }
}

impl fmt::Display for ParseErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(Colour::Never).trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Fault, Source};

    fn error() -> ParseError {
        let source = Source::new("web.hcl", "resources {\n\tmemroy = 100\n}\n");
        source.error(Fault::new(
            13..19,
            "Unsupported argument",
            "No \"memroy\" here.",
        ))
    }

    #[test]
    fn an_error_shows_its_line_with_a_caret_under_the_place() {
        let expected = "\
error: Unsupported argument
 --> web.hcl:2:2
  |
2 | \tmemroy = 100
  | \t^^^^^^
  = No \"memroy\" here.";
        assert_eq!(error().to_string(), expected);
        assert_eq!(
            error().one_line(),
            "web.hcl:2,2-8: Unsupported argument; No \"memroy\" here."
        );
    }

    #[test]
    fn colours_are_only_there_when_asked_for() {
        assert!(error().render(Colour::Always).contains("\x1b[31m"));
        assert!(!error().render(Colour::Never).contains('\x1b'));
    }

    #[test]
    fn control_characters_of_the_file_do_not_reach_the_terminal() {
        let source = Source::new("f", "a = \x1b[2J\n");
        let error = source.error(Fault::new(4..8, "s", "got \x1b[2J"));
        assert!(!error.render(Colour::Never).contains('\x1b'));
    }
}
