//! The value of a document's text.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Number};

use crate::language::functions::call::Call;
use crate::language::value::{Value, to_text};
use crate::language::value::{float, to_number};

/// Maximum depth of lists and objects: an evaluated value is walked recursively.
const DEPTH_MAX: usize = 64;

/// Returns the value of the only document in `text`; null for an empty one.
///
/// # Errors
/// The parser's message, a second document, a key that is no text, or values that grow too large: an
/// alias counts each time that it is used.
pub(super) fn document(call: &Call<'_>, text: &str) -> Result<Value, String> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| format!("the text is not YAML: {error}"))?;
        if reader.root.is_some() && matches!(event, Event::DocumentStart(_)) {
            return Err("the text has several documents: want one".to_owned());
        }
        reader.take(call, event)?;
    }
    Ok(reader.root.unwrap_or(Value::Null))
}

#[derive(Default)]
struct Reader {
    anchors: HashMap<usize, Value>,
    open: Vec<Open>,
    root: Option<Value>,
}

/// A list or an object that has not ended.
struct Open {
    anchor: usize,
    collection: Collection,
}

enum Collection {
    List(Vec<Value>),
    Object {
        entries: Map<String, Value>,
        key: Option<Key>,
    },
}

enum Key {
    Name(String),
    /// `<<`: the entries of its value are taken over.
    Merge,
}

impl Reader {
    fn take(&mut self, call: &Call<'_>, event: Event<'_>) -> Result<(), String> {
        match event {
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).cloned();
                let value = value.ok_or("an alias stands inside of its own anchor")?;
                call.pay(size(&value))?;
                self.add(value, false)
            }
            Event::Scalar(text, style, anchor, tag) => {
                let plain = style == ScalarStyle::Plain;
                let value = match tag.as_ref().map(|tag| tag.suffix.as_str()) {
                    None if plain => scalar(&text)?,
                    None | Some("str" | "binary") => Value::String(text.to_string()),
                    Some(tag @ ("bool" | "int" | "float" | "null")) => tagged(tag, &text)?,
                    Some(tag) => return Err(format!("the tag {tag:?} is not supported")),
                };
                call.pay(text.len())?;
                self.anchor(anchor, &value);
                self.add(value, plain && tag.is_none())
            }
            Event::SequenceStart(anchor, _) => self.open(anchor, Collection::List(Vec::new())),
            Event::MappingStart(anchor, _) => {
                let (entries, key) = (Map::new(), None);
                self.open(anchor, Collection::Object { entries, key })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(ended) = self.open.pop() else {
                    return Err("a list or an object ends that has not begun".to_owned());
                };
                let value = match ended.collection {
                    Collection::List(items) => Value::Array(items),
                    Collection::Object { entries, .. } => Value::Object(entries),
                };
                self.anchor(ended.anchor, &value);
                self.add(value, false)
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, anchor: usize, collection: Collection) -> Result<(), String> {
        if self.open.len() == DEPTH_MAX {
            return Err(format!("the YAML has more than {DEPTH_MAX} levels"));
        }
        self.open.push(Open { anchor, collection });
        Ok(())
    }

    fn anchor(&mut self, anchor: usize, value: &Value) {
        // 0 stands for a value without an anchor.
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
    }

    fn add(&mut self, value: Value, plain: bool) -> Result<(), String> {
        match self.open.last_mut().map(|open| &mut open.collection) {
            None => self.root = Some(value),
            Some(Collection::List(items)) => items.push(value),
            Some(Collection::Object { entries, key }) => match key.take() {
                None if plain && value == "<<" => *key = Some(Key::Merge),
                None => {
                    let name = to_text(&value)
                        .ok_or("a key of an object must be a text, a number or a bool")?;
                    *key = Some(Key::Name(name));
                }
                Some(Key::Name(name)) => {
                    entries.insert(name, value);
                }
                Some(Key::Merge) => merge(entries, value)?,
            },
        }
        Ok(())
    }
}

fn merge(entries: &mut Map<String, Value>, value: Value) -> Result<(), String> {
    match value {
        Value::Object(more) => entries.extend(more),
        Value::Array(items) => {
            for item in items {
                merge(entries, item)?;
            }
        }
        _ => return Err("the value of << must be an object, or a list of objects".to_owned()),
    }
    Ok(())
}

/// Bytes of the texts of a value, and one for each of its parts.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len(),
        Value::Array(items) => 1 + items.iter().map(size).sum::<usize>(),
        Value::Object(entries) => {
            let entry = |(key, value): (&String, &Value)| key.len() + size(value);
            1 + entries.iter().map(entry).sum::<usize>()
        }
        _ => 1,
    }
}

/// Returns the value of a scalar without quotes and tag. Source: YAML 1.2's core schema, and YAML
/// 1.1's names of true and false.
fn scalar(text: &str) -> Result<Value, String> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(Value::Null),
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF"
        | "-.inf" | "-.Inf" | "-.INF" => {
            return Err(format!("the number {text} is not supported"));
        }
        _ => {}
    }
    let value = truth(text).map(Value::Bool).or_else(|| number(text));
    Ok(value.unwrap_or_else(|| Value::String(text.to_owned())))
}

fn tagged(tag: &str, text: &str) -> Result<Value, String> {
    let value = match tag {
        "bool" => truth(text).map(Value::Bool),
        "null" => Some(Value::Null),
        _ => number(text),
    };
    value.ok_or_else(|| format!("{text:?} is no {tag}"))
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Some(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Some(false)
        }
        _ => None,
    }
}

fn number(text: &str) -> Option<Value> {
    let radix = |digits: &str, radix| u64::from_str_radix(digits, radix).ok().map(Value::from);
    if let Some(digits) = text.strip_prefix("0o") {
        return radix(digits, 8);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return radix(digits, 16);
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let starts = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.');
    let allowed =
        |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | 'e' | 'E' | '+' | '-');
    if !starts || !unsigned.chars().all(allowed) {
        return None;
    }
    let exact: Option<Number> = text.parse::<i64>().ok().map(Number::from);
    exact
        .or_else(|| to_number(&Value::String(text.to_owned())))
        .or_else(|| text.parse().ok().and_then(float))
        .map(Value::Number)
}
