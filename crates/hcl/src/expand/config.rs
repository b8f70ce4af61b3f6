//! Free-form bodies: a task's `config`, a scaling `policy`.
//!
//! Nested blocks become lists of maps, and labels keys within them: `check "a" { source = "x" }`
//! is `"check": [{"a": [{"source": "x"}]}]`. A map as the value of an attribute is a list of one map,
//! too, so `labels = { a = "b" }` and `labels { a = "b" }` mean the same. Source: Nomad's parser.

use std::ops::Range;

use serde_json::{Map, Value};

use super::expander::{Expander, join};
use crate::collector::Collector;
use crate::document::{Block, Content};
use crate::language::Scope;
use crate::source::Fault;

/// Records the positions of the options of a config written as one attribute.
pub(super) fn places(value: &Value, path: &str, range: &Range<usize>, out: &mut Collector) {
    for name in value.as_object().into_iter().flat_map(Map::keys) {
        out.place(&join(path, name), range.clone());
    }
}

/// Returns the options of a config written as one attribute, as its block form has them.
pub(super) fn options(config: Value) -> Value {
    match config {
        Value::Object(entries) => Value::Object(inner(entries)),
        other => other,
    }
}

/// Returns a value in which each map is an item of a list. As deep as the file nests.
fn as_blocks(value: Value) -> Value {
    match value {
        Value::Object(entries) => Value::Array(vec![Value::Object(inner(entries))]),
        Value::Array(items) => items
            .into_iter()
            .map(|item| match item {
                Value::Object(entries) => Value::Object(inner(entries)),
                other => as_blocks(other),
            })
            .collect(),
        scalar => scalar,
    }
}

fn inner(entries: Map<String, Value>) -> Map<String, Value> {
    let entries = entries.into_iter();
    entries
        .map(|(name, value)| (name, as_blocks(value)))
        .collect()
}

impl Expander<'_> {
    /// The recursion is as deep as the blocks nest, which the parser bounds.
    pub(super) fn config(
        &self,
        content: Content<'_>,
        path: &str,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) -> Map<String, Value> {
        let mut map = Map::new();
        // JSON has no blocks here, only nested values.
        let Some(items) = out.ok_or_fault(content.items(&|_| None)) else {
            return map;
        };
        for attribute in &items.attributes {
            out.place(&join(path, attribute.name), attribute.expr.range());
            match attribute.expr.eval(self.text, self.host, scope) {
                Ok(value) => drop(map.insert(attribute.name.to_owned(), as_blocks(value))),
                Err(fault) => out.fault(fault),
            }
        }
        for block in &items.blocks {
            self.config_block(block, path, &mut map, scope, out);
        }
        map
    }

    fn config_block(
        &self,
        block: &Block<'_>,
        path: &str,
        map: &mut Map<String, Value>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) {
        if block.kind == "dynamic" {
            self.dynamic(block, scope, out, &mut |expanded, scope, out| {
                self.config_block(expanded, path, map, scope, out);
            });
            return;
        }
        let path = join(path, block.kind);
        out.place(&path, block.header.clone());
        let mut value = Value::Object(self.config(block.content, &path, scope, out));
        for (label, _) in block.labels.iter().rev() {
            value = Value::Object(Map::from_iter([(label.clone(), Value::Array(vec![value]))]));
        }
        let list = map
            .entry(block.kind)
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(list) = list {
            list.push(value);
        } else {
            let detail = format!("{:?} is an argument of this config already", block.kind);
            let summary = "Duplicate config option";
            out.fault(Fault::new(
                block.header.clone(),
                summary,
                format!("{detail}: remove one"),
            ));
        }
    }
}
