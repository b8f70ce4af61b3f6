//! YAML: parsed with the types of YAML 1.1, written in block style, both as Go's `yaml.v2` does.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use saphyr_parser::{Event, Parser, ScalarStyle};

use crate::value::{DEPTH_MAX, Value};

/// The value of the first document in `text`.
///
/// # Errors
/// The parser's message, or a value too large: an alias counts each time it is used.
pub(crate) fn read(text: &str) -> Result<Value, String> {
    let mut reader = Reader {
        anchors: HashMap::new(),
        open: Vec::new(),
        root: None,
    };
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| format!("not YAML: {error}"))?;
        match event {
            Event::StreamEnd | Event::DocumentEnd => break,
            Event::Nothing | Event::StreamStart | Event::DocumentStart(_) => {}
            event => reader.take(event)?,
        }
    }
    Ok(reader.root.unwrap_or(Value::Nil))
}

struct Reader {
    anchors: HashMap<usize, Value>,
    open: Vec<Open>,
    root: Option<Value>,
}

enum Open {
    List {
        anchor: usize,
        items: Vec<Value>,
    },
    Map {
        anchor: usize,
        entries: BTreeMap<Rc<str>, Value>,
        merged: Vec<Value>,
        key: Option<Value>,
    },
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<(), String> {
        if self.open.len() > usize::from(DEPTH_MAX) {
            return Err(format!("the YAML has more than {DEPTH_MAX} levels"));
        }
        let (value, anchor) = match event {
            Event::Alias(anchor) => (
                self.anchors
                    .get(&anchor)
                    .cloned()
                    .ok_or("an alias stands inside of its own anchor")?,
                0,
            ),
            Event::Scalar(text, style, anchor, tag) => {
                let is_text =
                    style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str");
                (
                    if is_text {
                        Value::text(text.as_ref())
                    } else {
                        scalar(&text)
                    },
                    anchor,
                )
            }
            Event::SequenceStart(anchor, _) => {
                self.open.push(Open::List {
                    anchor,
                    items: Vec::new(),
                });
                return Ok(());
            }
            Event::MappingStart(anchor, _) => {
                self.open.push(Open::Map {
                    anchor,
                    entries: BTreeMap::new(),
                    merged: Vec::new(),
                    key: None,
                });
                return Ok(());
            }
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open::List { anchor, items }) => (Value::list(items)?, anchor),
                Some(Open::Map {
                    anchor,
                    mut entries,
                    merged,
                    ..
                }) => {
                    for (key, value) in merged.iter().filter_map(Value::as_map).flatten() {
                        entries
                            .entry(Rc::clone(key))
                            .or_insert_with(|| value.clone());
                    }
                    (Value::map(entries)?, anchor)
                }
                None => return Err("the YAML closes a list or map that is not open".to_owned()),
            },
            _ => return Ok(()),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List { items, .. }) => items.push(value),
            Some(Open::Map {
                entries,
                merged,
                key,
                ..
            }) => match key.take() {
                None => *key = Some(value),
                Some(key) if key.as_text().is_some_and(|key| **key == *"<<") => match value {
                    Value::List(list) => merged.extend(list.items.iter().cloned()),
                    value => merged.push(value),
                },
                Some(key) => {
                    entries.insert(key.to_string().into(), value);
                }
            },
        }
        Ok(())
    }
}

/// The value of a plain scalar.
fn scalar(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Nil,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" => return Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Value::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Value::Float(f64::NAN),
        _ => {}
    }
    if !text.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-' | '.')) {
        return Value::text(text);
    }
    let number = text
        .strip_prefix('.')
        .map_or_else(|| text.to_owned(), |rest| format!("0.{rest}"));
    match crate::lexer::parse_number(&number) {
        Some(crate::lexer::Token::Int(value)) => Value::Int(value),
        Some(crate::lexer::Token::Uint(value)) => Value::Uint(value),
        Some(crate::lexer::Token::Float(value)) => Value::Float(value),
        _ => Value::text(text),
    }
}

/// The value as YAML, without the last newline.
///
/// # Errors
/// A value that YAML can't express.
pub(crate) fn write(value: &Value) -> Result<String, String> {
    let mut out = String::new();
    put(&mut out, value, 0, false)?;
    Ok(out.trim_end_matches('\n').to_owned())
}

/// Writes a value behind `key:` or `-`, with its newline. A list in a map is not indented; `in_list` says that the
/// value starts on the line of its dash.
fn put(out: &mut String, value: &Value, level: usize, in_list: bool) -> Result<(), String> {
    match value {
        Value::List(list) if !list.items.is_empty() => {
            for (position, item) in list.items.iter().enumerate() {
                if position > 0 || !in_list {
                    indent(out, level);
                }
                out.push_str("- ");
                put(out, item, level + 1, true)?;
            }
            Ok(())
        }
        _ => match entries(value) {
            Some(entries) if !entries.is_empty() => {
                for (position, (key, value)) in entries.iter().enumerate() {
                    if position > 0 || !in_list {
                        indent(out, level);
                    }
                    out.push_str(&text(key, level));
                    out.push(':');
                    let is_list = matches!(value, Value::List(list) if !list.items.is_empty());
                    let is_map = self::entries(value).is_some_and(|entries| !entries.is_empty());
                    if is_list || is_map {
                        out.push('\n');
                        put(out, value, if is_list { level } else { level + 1 }, false)?;
                    } else {
                        out.push(' ');
                        put(out, value, level + 1, true)?;
                    }
                }
                Ok(())
            }
            _ => {
                out.push_str(&leaf(value, level)?);
                out.push('\n');
                Ok(())
            }
        },
    }
}

fn entries(value: &Value) -> Option<Vec<(&str, &Value)>> {
    match value {
        Value::Record(record) if record.text.is_none() && record.entries.is_none() => Some(
            record
                .fields
                .iter()
                .map(|(key, value)| (*key, value))
                .collect(),
        ),
        _ if value.as_text().is_some() => None,
        _ => Some(
            value
                .as_map()?
                .iter()
                .map(|(key, value)| (&**key, value))
                .collect(),
        ),
    }
}

fn indent(out: &mut String, level: usize) {
    out.push_str(&"  ".repeat(level));
}

fn leaf(value: &Value, level: usize) -> Result<String, String> {
    Ok(match value {
        Value::Nothing | Value::Nil => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Float(value) if value.is_nan() => ".nan".to_owned(),
        Value::Float(value) if value.is_infinite() => {
            if *value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
        }
        Value::Float(value) => super::float(*value),
        Value::List(_) => "[]".to_owned(),
        Value::Loop(..) | Value::Scratch => {
            return Err(format!("a value of type {} has no YAML", value.type_name()));
        }
        _ => match value.as_text() {
            Some(words) => text(words, level),
            None => "{}".to_owned(),
        },
    })
}

/// A text: plain where that reads back as the same text, else quoted; with line breaks, as a block.
fn text(words: &str, level: usize) -> String {
    let has_control = words
        .chars()
        .any(|letter| letter.is_control() && letter != '\n');
    if has_control || (words.contains('\n') && words.trim() != words.trim_end_matches('\n')) {
        return double_quoted(words);
    }
    if words.contains('\n') {
        let chomp = match words.len() - words.trim_end_matches('\n').len() {
            0 => "-",
            1 => "",
            _ => "+",
        };
        let lines: Vec<_> = words
            .strip_suffix('\n')
            .unwrap_or(words)
            .split('\n')
            .collect();
        let padding = "  ".repeat(level.max(1));
        let body: Vec<_> = lines
            .iter()
            .map(|line| {
                if line.is_empty() {
                    String::new()
                } else {
                    format!("{padding}{line}")
                }
            })
            .collect();
        return format!("|{chomp}\n{}", body.join("\n"));
    }
    if !matches!(scalar(words), Value::Text(_)) || words == "<<" || words == "=" {
        return double_quoted(words);
    }
    let special_start = words.starts_with([
        '!', '&', '*', '{', '}', '[', ']', ',', '#', '|', '>', '@', '`', '"', '\'', '%', ' ',
    ]) || words == "-"
        || words == "?"
        || words == ":"
        || words.starts_with("- ")
        || words.starts_with("? ")
        || words.starts_with("---")
        || words.starts_with("...");
    if special_start
        || words.contains(": ")
        || words.contains(" #")
        || words.ends_with(':')
        || words.ends_with(' ')
    {
        return format!("'{}'", words.replace('\'', "''"));
    }
    words.to_owned()
}

fn double_quoted(words: &str) -> String {
    super::quoted(words, |code| format!("\\x{code:02X}"))
}
