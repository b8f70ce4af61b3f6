//! A value as a document in block style. Source: the text that Nomad makes of the same value.

use crate::language::value::{Value, number_text};

/// Spaces of one level.
const INDENT: usize = 2;

/// A quoted text is folded at the first space behind this column.
const WIDTH: usize = 80;

/// Returns the document, which ends with a newline.
pub(super) fn document(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.value(value, None, Position::Root);
    let ends_open =
        writer.ends_open || matches!(value, Value::Null | Value::Bool(_) | Value::Number(_));
    let mut out = writer.out;
    if !out.ends_with('\n') {
        out.push('\n');
    }
    if ends_open {
        out.push_str("...\n");
    }
    out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Characters in the last line.
    column: usize,
    /// The last scalar keeps all its line breaks, so that only an end mark tells its end.
    ends_open: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    Root,
    /// Behind `key:`.
    Entry,
    /// Behind a dash.
    Item,
}

impl Writer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, line)) => self.column = line.chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    /// Starts a line at the indentation, unless the last one has just that.
    fn line(&mut self, indent: usize) {
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.put("\n");
        }
        self.put(&" ".repeat(indent));
    }

    /// Writes a value whose surrounding list or object has the indentation `outer`.
    fn value(&mut self, value: &Value, outer: Option<usize>, position: Position) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                // A list below a key has the key's indentation.
                let indent = match (outer, position) {
                    (None, _) => 0,
                    (Some(outer), Position::Entry) => outer,
                    (Some(outer), _) => outer + INDENT,
                };
                for (number, item) in items.iter().enumerate() {
                    self.start(indent, position, number);
                    self.put("-");
                    self.value(item, Some(indent), Position::Item);
                }
            }
            Value::Object(entries) if !entries.is_empty() => {
                let indent = outer.map_or(0, |outer| outer + INDENT);
                for (number, (key, value)) in entries.iter().enumerate() {
                    self.start(indent, position, number);
                    self.quoted(key, None);
                    self.put(":");
                    self.value(value, Some(indent), Position::Entry);
                }
            }
            scalar => {
                if position != Position::Root {
                    self.put(" ");
                }
                self.scalar(scalar, outer.map_or(INDENT, |outer| outer + INDENT));
            }
        }
    }

    /// Starts an item or an entry: the first one behind a dash is in the line of the dash.
    fn start(&mut self, indent: usize, position: Position, number: usize) {
        if number == 0 && position == Position::Item {
            self.put(" ");
        } else {
            self.line(indent);
        }
    }

    fn scalar(&mut self, value: &Value, indent: usize) {
        self.ends_open = false;
        match value {
            Value::String(text) if text.contains('\n') && fits_block(text) => {
                self.block(text, indent);
            }
            Value::String(text) => self.quoted(text, Some(indent)),
            Value::Number(number) => self.put(&number_text(number)),
            Value::Bool(flag) => self.put(if *flag { "true" } else { "false" }),
            Value::Null => self.put("null"),
            Value::Array(_) => self.put("[]"),
            Value::Object(_) => self.put("{}"),
        }
    }

    /// Writes a text of several lines as they are.
    fn block(&mut self, text: &str, indent: usize) {
        self.put("|");
        if text.starts_with([' ', '\n']) {
            self.put("2");
        }
        if !text.ends_with('\n') {
            self.put("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.put("+");
            self.ends_open = true;
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.put("\n");
            if !line.is_empty() {
                self.put(&" ".repeat(indent));
                self.put(line);
            }
        }
        self.put("\n");
    }

    /// Writes a text in quotes, folded to lines of the indentation if it has one.
    fn quoted(&mut self, text: &str, fold: Option<usize>) {
        self.put("\"");
        let mut after_space = false;
        let mut letters = text.char_indices().peekable();
        while let Some((at, letter)) = letters.next() {
            let next_is_space = letters.peek().is_some_and(|(_, next)| *next == ' ');
            let last = letters.peek().is_none();
            match (letter, fold) {
                (' ', Some(indent)) if !after_space && self.column > WIDTH && at > 0 && !last => {
                    self.put("\n");
                    self.put(&" ".repeat(indent));
                    if next_is_space {
                        self.put("\\");
                    }
                }
                _ => self.put(&escaped(letter)),
            }
            after_space = letter == ' ';
        }
        self.put("\"");
    }
}

/// Tells whether a text can be written as a block: it prints, and no line ends with a space.
fn fits_block(text: &str) -> bool {
    text.chars().all(|letter| letter == '\n' || prints(letter))
        && !text.ends_with(' ')
        && !text.contains(" \n")
}

fn prints(letter: char) -> bool {
    matches!(letter, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn escaped(letter: char) -> String {
    let code = u32::from(letter);
    match letter {
        '\0' => "\\0".to_owned(),
        '\u{7}' => "\\a".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\t' => "\\t".to_owned(),
        '\n' => "\\n".to_owned(),
        '\u{b}' => "\\v".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        '\r' => "\\r".to_owned(),
        '\u{1b}' => "\\e".to_owned(),
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\u{85}' => "\\N".to_owned(),
        '\u{2028}' => "\\L".to_owned(),
        '\u{2029}' => "\\P".to_owned(),
        _ if prints(letter) => letter.to_string(),
        _ if code <= 0xff => format!("\\x{code:02X}"),
        _ if code <= 0xffff => format!("\\u{code:04X}"),
        _ => format!("\\U{code:08X}"),
    }
}
