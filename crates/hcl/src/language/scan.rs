//! Search for unclosed brackets and quotes in a file that does not parse.
//!
//! The parser reports the place where it stopped, far from a missing quote or brace. The scan looks at
//! brackets, quotes, heredocs and comments only, and reports the opening one.

use crate::source::Fault;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Open {
    /// `{`, `[` or `(` as the byte that closes it.
    Bracket(u8),
    Quote,
    /// `${` or `%{` within a text.
    Template,
    Heredoc(String),
}

/// The open brackets and texts at a place, the innermost last.
struct Scan<'a> {
    text: &'a str,
    offset: usize,
    stack: Vec<Level>,
    /// The current attribute has its `=`.
    assigned: bool,
    /// Start of the first object with too many entries.
    oversized: Option<usize>,
    /// Start of the first level that is too deep.
    too_deep: Option<usize>,
}

struct Level {
    open: Open,
    /// Start.
    offset: usize,
    /// Number of entries so far; `None` if it is no object.
    entries: Option<usize>,
}

/// Returns the unclosed bracket or quote, if there is one.
pub(crate) fn imbalance(text: &str) -> Option<Fault> {
    let mut scan = Scan::new(text);
    if let Err(fault) = scan.run(text.len()) {
        return Some(fault);
    }
    let level = scan.stack.pop()?;
    Some(unclosed(&level.open, level.offset))
}

/// Returns the position of the innermost open brace at `offset`.
pub(crate) fn open_brace(text: &str, offset: usize) -> Option<usize> {
    let mut scan = Scan::new(text);
    scan.run(offset.min(text.len())).ok()?;
    match scan.stack.last() {
        Some(Level {
            open: Open::Bracket(b'}'),
            offset,
            ..
        }) => Some(*offset),
        _ => None,
    }
}

/// Maximum number of entries of an object. The parser takes quadratic time: some 50 ms for 2,000
/// entries, 2 s for a file full of such objects.
const MAX_ENTRIES: usize = 2_000;

/// Maximum nesting of brackets, texts and templates; job files have about ten levels. The parser's
/// own limit, 64 expressions, exceeds a thread's stack of 2 MiB for templates with directives in
/// builds without optimisation.
const MAX_NESTING: usize = 48;

/// Returns a fault if the text is too deep or too large for the parser.
pub(crate) fn excess(text: &str) -> Option<Fault> {
    Scan::new(text).excess()
}

/// Like [`excess`], for a template without quotes.
pub(crate) fn template_excess(text: &str) -> Option<Fault> {
    let mut scan = Scan::new(text);
    // No line holds only this.
    scan.open(Open::Heredoc("\n".to_owned()), 0);
    scan.excess()
}

fn too_deep(opened: usize) -> Fault {
    let detail =
        format!("Brackets and templates nest more than {MAX_NESTING} levels deep: use locals");
    Fault::new(opened..opened + 1, "Nested too deep", detail)
}

fn oversized_object(opened: usize) -> Fault {
    let detail = format!(
        "An object may have {MAX_ENTRIES} entries: split it, or read it with jsondecode(file(…))",
    );
    Fault::new(opened..opened + 1, "Object too large", detail)
}

fn unclosed(open: &Open, offset: usize) -> Fault {
    let (width, summary, detail) = match open {
        Open::Bracket(b'}') => (
            1,
            "Unclosed configuration block",
            "There is no closing brace for this one before the end of the file: add a }".to_owned(),
        ),
        Open::Bracket(close) => (
            1,
            "Unclosed bracket",
            format!(
                "There is no closing bracket for this one: add a {}",
                char::from(*close)
            ),
        ),
        Open::Quote => (1, "Unterminated string", UNTERMINATED.to_owned()),
        Open::Template => (
            2,
            "Unterminated template",
            "There is no closing brace for this one: add a }, or write $${ for the text ${"
                .to_owned(),
        ),
        Open::Heredoc(delimiter) => (
            2,
            "Unterminated heredoc",
            format!("This text ends with a line that holds only {delimiter}: add that line"),
        ),
    };
    Fault::new(offset..offset + width, summary, detail)
}

const UNTERMINATED: &str = "This text has no closing quote on its line: add the \", and for several \
                            lines write a heredoc, <<EOF";

impl<'a> Scan<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            stack: Vec::new(),
            assigned: false,
            oversized: None,
            too_deep: None,
        }
    }

    fn run(&mut self, end: usize) -> Result<(), Fault> {
        while self.offset < end {
            let top = self.stack.last().map(|level| level.open.clone());
            match top {
                Some(Open::Quote) => self.in_quote()?,
                Some(Open::Heredoc(delimiter)) => self.in_heredoc(&delimiter),
                _ => self.in_code()?,
            }
        }
        Ok(())
    }

    fn excess(mut self) -> Option<Fault> {
        // Syntax errors are reported elsewhere.
        let _ = self.run(self.text.len());
        let deep = self.too_deep.map(too_deep);
        deep.or_else(|| self.oversized.map(oversized_object))
    }

    fn bytes(&self) -> &[u8] {
        &self.text.as_bytes()[self.offset..]
    }

    fn open(&mut self, open: Open, width: usize) {
        // Among attributes and blocks a brace opens a block, unless it follows a =.
        let is_object = open == Open::Bracket(b'}') && (self.assigned || !self.in_body());
        let entries = is_object.then_some(0);
        if self.stack.len() == MAX_NESTING {
            self.too_deep.get_or_insert(self.offset);
        }
        self.stack.push(Level {
            open,
            offset: self.offset,
            entries,
        });
        self.offset += width;
    }

    /// Tells whether the position expects attributes and blocks, not a value.
    fn in_body(&self) -> bool {
        self.stack
            .last()
            .is_none_or(|level| level.open == Open::Bracket(b'}') && level.entries.is_none())
    }

    fn in_quote(&mut self) -> Result<(), Fault> {
        match self.bytes() {
            [b'\\', ..] => self.offset += 2,
            [b'$', b'$', b'{', ..] | [b'%', b'%', b'{', ..] => self.offset += 3,
            [b'$' | b'%', b'{', ..] => self.open(Open::Template, 2),
            [b'"', ..] => {
                self.stack.pop();
                self.offset += 1;
            }
            [b'\n', ..] => return Err(self.unterminated()),
            _ => self.offset += 1,
        }
        Ok(())
    }

    /// Handles a line that ends inside a text: its quote is missing, or the brace of a template in it,
    /// so that the closing quote was read as an opening one.
    fn unterminated(&mut self) -> Fault {
        let quote = self.stack.pop();
        if let Some(Level {
            open: Open::Template,
            offset,
            ..
        }) = self.stack.last()
        {
            return unclosed(&Open::Template, *offset);
        }
        let opened = quote.map_or(0, |level| level.offset);
        Fault::new(opened..self.offset, "Unterminated string", UNTERMINATED)
    }

    /// Reads one line of a heredoc, or up to a template in it.
    fn in_heredoc(&mut self, delimiter: &str) {
        let rest = &self.text.as_bytes()[self.offset..];
        let at_line_start = self.offset == 0 || self.text.as_bytes()[self.offset - 1] == b'\n';
        // Each line is checked as a whole once, regardless of its templates.
        if at_line_start {
            let line_len = self.line_len();
            if rest[..line_len].trim_ascii() == delimiter.as_bytes() {
                self.stack.pop();
                self.offset += line_len;
                return;
            }
        }
        let mut position = 0;
        loop {
            match &rest[position..] {
                [] | [b'\n', ..] => break,
                [b'$', b'$', b'{', ..] | [b'%', b'%', b'{', ..] => position += 3,
                [b'$' | b'%', b'{', ..] => {
                    self.offset += position;
                    self.open(Open::Template, 2);
                    return;
                }
                _ => position += 1,
            }
        }
        self.offset += position + 1;
    }

    fn in_code(&mut self) -> Result<(), Fault> {
        match self.bytes() {
            [b'"', ..] => self.open(Open::Quote, 1),
            [b'#', ..] | [b'/', b'/', ..] => self.offset += self.line_len(),
            [b'/', b'*', ..] => self.comment()?,
            [b'<', b'<', ..] => self.heredoc_start(),
            [b'=', b'=' | b'>', ..] => self.offset += 2,
            [b'=' | b':', ..] => self.entry(),
            [b'\n', ..] => {
                self.assigned &= !self.in_body();
                self.offset += 1;
            }
            [b'{', ..] => self.open(Open::Bracket(b'}'), 1),
            [b'[', ..] => self.open(Open::Bracket(b']'), 1),
            [b'(', ..] => self.open(Open::Bracket(b')'), 1),
            [close @ (b'}' | b']' | b')'), ..] => self.close(*close)?,
            _ => self.offset += 1,
        }
        Ok(())
    }

    /// Skips the separator between a key and its value.
    fn entry(&mut self) {
        self.offset += 1;
        self.assigned |= self.in_body();
        if let Some(level) = self.stack.last_mut()
            && let Some(entries) = &mut level.entries
        {
            *entries += 1;
            if *entries > MAX_ENTRIES {
                self.oversized.get_or_insert(level.offset);
            }
        }
    }

    fn line_len(&self) -> usize {
        self.bytes()
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(self.bytes().len())
    }

    fn comment(&mut self) -> Result<(), Fault> {
        match self
            .bytes()
            .windows(2)
            .skip(2)
            .position(|pair| pair == b"*/")
        {
            Some(position) => {
                self.offset += position + 4;
                Ok(())
            }
            None => {
                let detail = "This comment has no end: add */";
                Err(Fault::new(
                    self.offset..self.offset + 2,
                    "Unterminated comment",
                    detail,
                ))
            }
        }
    }

    fn heredoc_start(&mut self) {
        let start = &self.bytes()[2..];
        let start = start.strip_prefix(b"-").unwrap_or(start);
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let width = start.iter().take_while(|byte| is_part(byte)).count();
        let (name, rest) = start.split_at(width);
        let ends = rest
            .iter()
            .find(|byte| **byte == b'\n' || !byte.is_ascii_whitespace())
            .is_none_or(|byte| *byte == b'\n');
        if width > 0 && ends {
            let name = String::from_utf8_lossy(name).into_owned();
            let width = self.line_len() + 1;
            self.open(Open::Heredoc(name), width);
        } else {
            self.offset += 2;
        }
    }

    fn close(&mut self, close: u8) -> Result<(), Fault> {
        let here = self.offset..self.offset + 1;
        self.offset += 1;
        match self.stack.pop() {
            Some(Level {
                open: Open::Bracket(expected),
                ..
            }) if expected == close => Ok(()),
            Some(Level {
                open: Open::Template,
                ..
            }) if close == b'}' => Ok(()),
            Some(level) => {
                let mut fault = unclosed(&level.open, level.offset);
                fault.detail = format!("{}; a {} comes first", fault.detail, char::from(close));
                Err(fault)
            }
            None => {
                let detail = format!(
                    "Nothing is open that this {} could close",
                    char::from(close)
                );
                Err(Fault::new(
                    here,
                    "Unexpected bracket",
                    format!("{detail}: remove it"),
                ))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_opening_one_is_named_not_the_place_where_it_was_noticed() {
        for (text, at, summary) in [
            ("a {\n  b = 1\n", 2, "Unclosed configuration block"),
            ("a {\n  b = [1,\n}\n", 10, "Unclosed bracket"),
            ("a = \"x\nb = 1\n", 4, "Unterminated string"),
            ("a = \"${x\n", 5, "Unterminated template"),
            ("a = <<-EOF\n  x\n", 4, "Unterminated heredoc"),
            ("a = 1\n}\n", 6, "Unexpected bracket"),
            ("/* a", 0, "Unterminated comment"),
        ] {
            let fault = imbalance(text).unwrap();
            assert_eq!(
                (fault.range.start, fault.summary.as_str()),
                (at, summary),
                "{text}"
            );
        }
    }

    #[test]
    fn only_an_object_with_too_many_entries_is_too_large() {
        let entries = |count: usize| {
            (0..count)
                .map(|n| format!("k{n} = 1\n"))
                .collect::<String>()
        };
        let many = entries(MAX_ENTRIES + 1);
        assert_eq!(
            excess(&format!("a = {{\n{}}}\n", entries(MAX_ENTRIES))),
            None
        );
        assert_eq!(excess(&format!("a {{\n{many}}}\n")), None);
        for text in [
            format!("a = {{\n{many}}}\n"),
            format!("a = f({{ \n{many}}})\n"),
        ] {
            let opened = text.find('{').unwrap();
            assert_eq!(excess(&text).unwrap().range, opened..opened + 1);
        }
    }

    #[test]
    fn too_deep_nesting_is_found_where_it_begins() {
        let lists = |count: usize| format!("a = {}{}", "[".repeat(count), "]".repeat(count));
        assert_eq!(excess(&lists(MAX_NESTING)), None);
        let fault = excess(&lists(MAX_NESTING + 1)).unwrap();
        assert_eq!(fault.range.start, "a = ".len() + MAX_NESTING);
        // A template adds a level to its text.
        let texts = |count: usize| format!("${{{}{}}}", "\"${".repeat(count), "}\"".repeat(count));
        assert_eq!(template_excess(&texts(MAX_NESTING / 2 - 1)), None);
        assert!(template_excess(&texts(MAX_NESTING / 2)).is_some());
        assert_eq!(excess(&"a = [[], \"${[]}\"]\n".repeat(1_000)), None);
    }

    #[test]
    fn brackets_in_texts_and_comments_do_not_count() {
        for text in [
            "a = \"{[(\" # {\nb = 1 // [\n/* ( */\n",
            "a = <<EOF\n{ $${x ${y[\"}\"]} %%{\n  EOF\nb = \"\\\"{\"\n",
            "a = 1 << 2\n",
        ] {
            assert_eq!(imbalance(text), None, "{text}");
        }
    }
}
