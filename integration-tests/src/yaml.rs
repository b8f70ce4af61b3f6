//! Reads YAML as JSON values, for checks of the files that ship. Every scalar is a text; `<<` is a key.

use std::collections::HashMap;

use anyhow::{Context as _, Result};
use saphyr_parser::{Event, Parser};
use serde_json::{Map, Value};

/// Returns the documents of `text`.
///
/// # Errors
/// The text is not YAML.
pub fn documents(text: &str) -> Result<Vec<Value>> {
    let mut reader = Reader::default();
    for event in Parser::new_from_str(text) {
        reader.take(event?.0)?;
    }
    Ok(reader.documents)
}

/// Returns the first document of `text`.
///
/// # Errors
/// The text is not YAML, or empty.
pub fn document(text: &str) -> Result<Value> {
    let first = documents(text)?.into_iter().next();
    first.context("no document")
}

#[derive(Default)]
struct Reader {
    documents: Vec<Value>,
    open: Vec<Open>,
    anchors: HashMap<usize, Value>,
}

/// A list or a map whose end is not read yet, with its anchor.
enum Open {
    List(Vec<Value>, usize),
    Map(Map<String, Value>, Option<String>, usize),
}

impl Reader {
    fn take(&mut self, event: Event<'_>) -> Result<()> {
        let (value, anchor) = match event {
            Event::SequenceStart(anchor, _) => {
                self.open.push(Open::List(Vec::new(), anchor));
                return Ok(());
            }
            Event::MappingStart(anchor, _) => {
                self.open.push(Open::Map(Map::new(), None, anchor));
                return Ok(());
            }
            Event::SequenceEnd | Event::MappingEnd => {
                match self.open.pop().context("nothing is open")? {
                    Open::List(items, anchor) => (Value::Array(items), anchor),
                    Open::Map(entries, _, anchor) => (Value::Object(entries), anchor),
                }
            }
            Event::Scalar(text, _, anchor, _) => (Value::String(text.into_owned()), anchor),
            Event::Alias(anchor) => {
                let value = self.anchors.get(&anchor).context("an unknown alias")?;
                (value.clone(), 0)
            }
            _ => return Ok(()),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, value.clone());
        }
        match self.open.last_mut() {
            None => self.documents.push(value),
            Some(Open::List(items, _)) => items.push(value),
            Some(Open::Map(entries, key, _)) => match key.take() {
                Some(key) => {
                    entries.insert(key, value);
                }
                None => *key = Some(value.as_str().context("a key is no text")?.to_owned()),
            },
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_lists_and_aliases_become_json() {
        let text = "a: &x [1, {b: c}]\nd:\n  - *x\n  - |\n    two\n    lines\n---\nnext";
        let expected = [
            json!({"a": ["1", {"b": "c"}], "d": [["1", {"b": "c"}], "two\nlines\n"]}),
            json!("next"),
        ];
        assert_eq!(documents(text).unwrap(), expected);
        assert!(document("a: [").is_err());
    }
}
