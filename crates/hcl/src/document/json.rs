//! JSON with the place of every value.
//!
//! serde_json checks the syntax and decodes strings and numbers. The reader then walks over the
//! well-formed text and records positions.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::{Number, Value};

use crate::source::Fault;

/// A value and its byte range.
#[derive(Debug)]
pub struct Json {
    pub range: Range<usize>,
    pub node: Node,
}

#[derive(Debug)]
pub enum Node {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Json>),
    /// In the order of the text; a key may occur twice.
    Object(Vec<(Key, Json)>),
}

#[derive(Debug)]
pub struct Key {
    pub name: String,
    pub range: Range<usize>,
}

/// Maximum nesting, as in serde_json. Consumers are recursive, and a thread's stack holds thousands
/// of levels.
const MAX_DEPTH: usize = 128;

/// Reads a JSON text.
pub fn read(text: &str) -> Result<Json, Fault> {
    // Does not limit the depth: serde_json skips ignored values without recursion.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Err(syntax(text, &error));
    }
    let mut reader = Reader {
        text,
        offset: 0,
        depth: 0,
    };
    reader.value()
}

fn syntax(text: &str, error: &serde_json::Error) -> Fault {
    let line_start = text
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1))
        .map(str::len);
    let offset = line_start.sum::<usize>() + error.column().saturating_sub(1);
    let offset = offset.min(text.len());
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Fault::new(
        offset..offset + 1,
        "Invalid JSON",
        format!("{message}: mend the JSON here or just before"),
    )
}

/// Walks over a text that is valid JSON.
struct Reader<'a> {
    text: &'a str,
    offset: usize,
    /// Number of open lists and objects.
    depth: usize,
}

impl Reader<'_> {
    fn value(&mut self) -> Result<Json, Fault> {
        self.skip_space();
        let start = self.offset;
        let node = match self.peek() {
            b'{' => self.nested(Self::object)?,
            b'[' => self.nested(Self::list)?,
            b'"' => Node::Text(self.string()?),
            b'n' => self.word(4, Node::Null),
            b't' => self.word(4, Node::Bool(true)),
            b'f' => self.word(5, Node::Bool(false)),
            _ => self.number()?,
        };
        Ok(Json {
            range: start..self.offset,
            node,
        })
    }

    /// Reads a list or an object, one level deeper.
    fn nested(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<Node, Fault>,
    ) -> Result<Node, Fault> {
        if self.depth == MAX_DEPTH {
            let here = self.offset..self.offset + 1;
            let detail =
                format!("Lists and objects nest more than {MAX_DEPTH} levels deep: flatten them");
            return Err(Fault::new(here, "Nested too deep", detail));
        }
        self.depth += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn object(&mut self) -> Result<Node, Fault> {
        let mut entries = Vec::new();
        self.offset += 1;
        while !self.closed(b'}') {
            let start = self.offset;
            let name = self.string()?;
            let key = Key {
                name,
                range: start..self.offset,
            };
            self.skip_space();
            self.offset += 1; // the colon
            entries.push((key, self.value()?));
        }
        Ok(Node::Object(entries))
    }

    fn list(&mut self) -> Result<Node, Fault> {
        let mut items = Vec::new();
        self.offset += 1;
        while !self.closed(b']') {
            items.push(self.value()?);
        }
        Ok(Node::List(items))
    }

    /// Steps over a comma or over `end`; true after `end`.
    fn closed(&mut self, end: u8) -> bool {
        self.skip_space();
        if self.peek() == b',' {
            self.offset += 1;
            self.skip_space();
        }
        if self.peek() == end {
            self.offset += 1;
            return true;
        }
        // Unreachable for valid JSON.
        self.offset >= self.text.len()
    }

    fn string(&mut self) -> Result<String, Fault> {
        let start = self.offset;
        let mut escaped = false;
        self.offset += 1;
        while self.offset < self.text.len() {
            let byte = self.peek();
            self.offset += 1;
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => break,
                _ => {}
            }
        }
        let range = start..self.offset;
        serde_json::from_str(&self.text[range.clone()])
            .map_err(|error| Fault::new(range, "Invalid JSON", error.to_string()))
    }

    fn number(&mut self) -> Result<Node, Fault> {
        let start = self.offset;
        while matches!(self.peek(), b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E') {
            self.offset += 1;
        }
        let range = start..self.offset;
        serde_json::from_str(&self.text[range.clone()])
            .map(Node::Number)
            .map_err(|error| Fault::new(range, "Invalid JSON", error.to_string()))
    }

    fn word(&mut self, len: usize, node: Node) -> Node {
        self.offset += len;
        node
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.offset += 1;
        }
    }

    /// Returns the next byte; 0 at the end.
    fn peek(&self) -> u8 {
        self.text.as_bytes().get(self.offset).copied().unwrap_or(0)
    }
}

/// Returns the value without positions; the last of repeated keys wins.
pub fn plain(json: &Json) -> Value {
    match &json.node {
        Node::Null => Value::Null,
        Node::Bool(flag) => Value::Bool(*flag),
        Node::Number(number) => Value::Number(number.clone()),
        Node::Text(text) => Value::String(text.clone()),
        Node::List(items) => Value::Array(items.iter().map(plain).collect()),
        Node::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, v)| (key.name.clone(), plain(v)))
                .collect(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_place() {
        let text = r#" {"a": [1, -2.5e3, "x\"é"], "b" : {"c":null,"d":true}, "e":{} , "f":[]} "#;
        let json = read(text).unwrap();
        let mut seen = Vec::new();
        walk(text, &json, &mut seen);
        let expected = [
            "\"a\"",
            "1",
            "-2.5e3",
            "\"x\\\"é\"",
            "\"b\"",
            "\"c\"",
            "null",
            "\"d\"",
            "true",
            "\"e\"",
            "\"f\"",
        ];
        assert_eq!(seen, expected);
    }

    fn walk<'a>(text: &'a str, json: &Json, seen: &mut Vec<&'a str>) {
        match &json.node {
            Node::Object(entries) => {
                for (key, value) in entries {
                    seen.push(&text[key.range.clone()]);
                    walk(text, value, seen);
                }
            }
            Node::List(items) => items.iter().for_each(|item| walk(text, item, seen)),
            _ => seen.push(&text[json.range.clone()]),
        }
    }

    #[test]
    fn too_deep_nesting_is_refused_at_the_first_excess_level() {
        let lists = |count: usize| format!("{}{}", "[".repeat(count), "]".repeat(count));
        let objects = |count: usize| format!("{}1{}", "{\"a\":".repeat(count), "}".repeat(count));
        assert!(read(&lists(MAX_DEPTH)).is_ok());
        assert!(read(&objects(MAX_DEPTH)).is_ok());
        // Siblings do not add depth.
        assert!(read(&format!("[{}[]]", "[[]],".repeat(1_000))).is_ok());
        for levels in [MAX_DEPTH + 1, 5_000, 500_000] {
            assert_eq!(
                read(&lists(levels)).unwrap_err().range,
                MAX_DEPTH..MAX_DEPTH + 1
            );
            let start = MAX_DEPTH * "{\"a\":".len();
            assert_eq!(read(&objects(levels)).unwrap_err().range, start..start + 1);
        }
    }

    #[test]
    fn a_syntax_error_names_its_place() {
        let fault = read("{\n  \"a\": 1,\n  \"b\" 2\n}").unwrap_err();
        assert_eq!(fault.range.start, 18);
        assert!(fault.detail.starts_with("expected `:`"), "{}", fault.detail);
    }
}
