//! Text with line positions, and faults in it.

use std::ops::Range;

use crate::report::ParseError;

/// An error at a byte range; [`Source::error`] turns it into a [`ParseError`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the text.
    pub range: Range<usize>,
    pub summary: String,
    pub detail: String,
}

impl Fault {
    pub fn new(range: Range<usize>, summary: impl Into<String>, detail: impl Into<String>) -> Self {
        Self {
            range,
            summary: summary.into(),
            detail: detail.into(),
        }
    }

    /// Moves the fault to `range`, for a text embedded in another one.
    pub fn at(self, range: Range<usize>) -> Self {
        Self { range, ..self }
    }
}

/// A file, or the value of a variable, with its name in messages.
#[derive(Clone, Debug)]
pub struct Source {
    pub file: String,
    pub text: String,
    /// The first byte of each line.
    line_starts: Vec<usize>,
}

/// Maximum length of a snippet, in characters: fits a terminal line.
const SNIPPET_CHARS: usize = 100;

impl Source {
    pub fn new(file: &str, text: &str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let line_starts = std::iter::once(0)
            .chain(ends.map(|(offset, _)| offset + 1))
            .collect();
        Self {
            file: file.to_owned(),
            text: text.to_owned(),
            line_starts,
        }
    }

    /// Returns line and column of a byte, both from 1, columns in characters.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let offset = self.boundary(offset);
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts[line - 1];
        (line, self.text[start..offset].chars().count() + 1)
    }

    /// Returns the start of the character that `offset` is in, at most the end of the text.
    fn boundary(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }

    pub fn error(&self, fault: Fault) -> ParseError {
        let (line, column) = self.position(fault.range.start);
        let (end_line, end_column) = self.position(fault.range.end.max(fault.range.start));
        let (snippet, caret) = self.snippet(line, column, (end_line, end_column));
        ParseError {
            file: self.file.clone(),
            line,
            column,
            end_line,
            end_column,
            summary: fault.summary,
            detail: fault.detail,
            snippet,
            caret,
        }
    }

    /// Returns a window of the line around the column, and the characters to underline.
    fn snippet(&self, line: usize, column: usize, end: (usize, usize)) -> (String, Range<usize>) {
        let start = self.line_starts[line - 1];
        let stop = self
            .line_starts
            .get(line)
            .map_or(self.text.len(), |next| next - 1);
        let chars: Vec<char> = self.text[start..stop]
            .trim_end_matches('\r')
            .chars()
            .collect();
        let first = (column - 1).min(chars.len());
        let last = if end.0 == line {
            end.1 - 1
        } else {
            chars.len()
        };
        let from = if chars.len() <= SNIPPET_CHARS {
            0
        } else {
            first
                .saturating_sub(SNIPPET_CHARS / 2)
                .min(chars.len() - SNIPPET_CHARS)
        };
        let to = chars.len().min(from + SNIPPET_CHARS);
        let snippet = chars[from..to].iter().collect();
        let last = last.clamp(first + 1, (to + 1).max(first + 1));
        (snippet, first - from..last - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("f", "añb\ncd\n");
        assert_eq!(source.position(0), (1, 1));
        assert_eq!(source.position(3), (1, 3));
        // Inside a character: its beginning.
        assert_eq!(source.position(2), (1, 2));
        assert_eq!(source.position(5), (2, 1));
        assert_eq!(source.position(99), (3, 1));
    }

    #[test]
    fn a_long_line_is_cut_to_a_window_around_the_place() {
        let text = format!("{}x{}", "-".repeat(500), "-".repeat(500));
        let error = Source::new("f", &text).error(Fault::new(500..501, "s", "d"));
        assert_eq!((error.line, error.column), (1, 501));
        assert_eq!(error.snippet.chars().count(), SNIPPET_CHARS);
        assert_eq!(error.snippet.chars().nth(error.caret.start), Some('x'));
        assert_eq!(error.caret.len(), 1);
    }

    #[test]
    fn a_place_over_several_lines_underlines_the_rest_of_the_first() {
        let error = Source::new("f", "ab cd\nef\n").error(Fault::new(3..8, "s", "d"));
        assert_eq!((error.end_line, error.end_column), (2, 3));
        assert_eq!(error.caret, 3..5);
    }
}
