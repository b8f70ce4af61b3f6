//! One block: its label, attributes and inner blocks.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::{Map, Value};

use super::expander::{Expander, join};
use super::{config, convert, unknown};
use crate::collector::Collector;
use crate::document::{Attribute, Block, Content};
use crate::language::Scope;
use crate::schema::{Child, Kind, Repeat, Schema};
use crate::source::Fault;

/// The state of reading one block.
struct Reading<'s> {
    schema: &'static Schema,
    path: &'s str,
    map: Map<String, Value>,
    /// First positions of attributes and unique blocks.
    seen: BTreeMap<&'static str, Range<usize>>,
}

impl<'s> Reading<'s> {
    fn new(schema: &'static Schema, path: &'s str) -> Self {
        Self {
            schema,
            path,
            map: Map::new(),
            seen: BTreeMap::new(),
        }
    }
}

impl Expander<'_> {
    /// Returns the object of `block`.
    pub(crate) fn block(
        &self,
        block: &Block<'_>,
        schema: &'static Schema,
        path: &str,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) -> Map<String, Value> {
        out.place(path, block.header.clone());
        let mut reading = Reading::new(schema, path);
        self.label(block, &mut reading, out);
        self.content(block.content, &mut reading, scope, out);
        finish(reading, ("block", &block.header), out)
    }

    /// Returns the object of a file whose top level is the content of the root block.
    pub(crate) fn body(
        &self,
        content: Content<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) -> Map<String, Value> {
        let mut reading = Reading::new(self.root, "");
        self.content(content, &mut reading, scope, out);
        finish(reading, ("file", &(0..0)), out)
    }

    fn label(&self, block: &Block<'_>, reading: &mut Reading<'_>, out: &mut Collector) {
        let name = reading.schema.name;
        let Some(label) = &reading.schema.label else {
            if let Some((_, range)) = block.labels.first() {
                let detail = format!("No labels are expected for {name} blocks: remove it");
                let summary = format!("Extraneous label for {name}");
                out.fault(Fault::new(range.clone(), summary, detail));
            }
            return;
        };
        let noun = label.noun;
        let Some((text, range)) = block.labels.first() else {
            let detail =
                format!("All {name} blocks must have 1 labels ({noun}): write {name} \"…\" {{",);
            out.fault(Fault::new(
                block.header.clone(),
                format!("Missing {noun} for {name}"),
                detail,
            ));
            return;
        };
        if let Some((_, range)) = block.labels.get(1) {
            let detail = format!(
                "Only 1 labels ({noun}) are expected for {name} blocks: remove the others",
            );
            out.fault(Fault::new(
                range.clone(),
                format!("Extraneous label for {name}"),
                detail,
            ));
        }
        let field = if reading.path.is_empty() { "id" } else { noun };
        out.place(&join(reading.path, field), range.clone());
        reading
            .map
            .insert(label.json.to_owned(), Value::String(text.clone()));
    }

    fn content(
        &self,
        content: Content<'_>,
        reading: &mut Reading<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) {
        let schema = reading.schema;
        let labels_of = |kind: &str| match kind {
            "dynamic" => Some(1),
            _ => schema
                .block(kind)
                .map(|child| usize::from(child.schema.label.is_some())),
        };
        let Some(items) = out.ok_or_fault(content.items(&labels_of)) else {
            return;
        };
        for attribute in &items.attributes {
            self.attribute(attribute, reading, scope, out);
        }
        for block in &items.blocks {
            self.inner(block, reading, scope, out);
        }
    }

    fn attribute(
        &self,
        attribute: &Attribute<'_>,
        reading: &mut Reading<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) {
        let Some(known) = reading.schema.attribute(attribute.name) else {
            return unknown::attribute(attribute, reading.schema, self.root, out);
        };
        let range = attribute.expr.range();
        let path = join(reading.path, known.name);
        out.place(&path, range.clone());
        reading
            .seen
            .insert(known.name, attribute.name_range.clone());
        let value = attribute.expr.eval(self.text, self.host, scope);
        let value = value.and_then(|value| {
            convert::convert(known.kind, known.name, &value)
                .map_err(|(summary, detail)| Fault::new(range.clone(), summary, detail))
        });
        match value {
            Ok(Value::Null) => {}
            Ok(mut value) => {
                if known.kind == Kind::Config {
                    config::places(&value, &path, &range, out);
                    value = config::options(value);
                }
                reading.map.insert(known.key(), value);
            }
            Err(fault) => out.fault(fault),
        }
    }

    /// Reads a nested block.
    fn inner(
        &self,
        block: &Block<'_>,
        reading: &mut Reading<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) {
        if block.kind == "dynamic" {
            self.dynamic(block, scope, out, &mut |expanded, scope, out| {
                self.inner(expanded, reading, scope, out);
            });
            return;
        }
        if let Some(child) = reading.schema.block(block.kind) {
            self.child(block, child, reading, scope, out);
            return;
        }
        let map = reading
            .schema
            .attribute(block.kind)
            .filter(|known| known.kind.has_block_form());
        let Some(known) = map else {
            return unknown::block(block, reading.schema, self.root, out);
        };
        if !once(known.name, block, reading, out) {
            return;
        }
        let path = join(reading.path, known.name);
        out.place(&path, block.header.clone());
        if let Some((_, range)) = block.labels.first() {
            let detail = format!(
                "No labels are expected for {} blocks: remove it",
                known.name
            );
            let summary = format!("Extraneous label for {}", known.name);
            return out.fault(Fault::new(range.clone(), summary, detail));
        }
        let value = if known.kind == Kind::Config {
            self.config(block.content, &path, scope, out)
        } else {
            self.text_map(block.content, &path, scope, out)
        };
        reading.map.insert(known.key(), Value::Object(value));
    }

    fn child(
        &self,
        block: &Block<'_>,
        child: &'static Child,
        reading: &mut Reading<'_>,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) {
        let path = join(reading.path, child.schema.name);
        if child.repeat == Repeat::Once {
            if once(child.schema.name, block, reading, out) {
                let object = self.block(block, child.schema, &path, scope, out);
                reading
                    .map
                    .insert(child.json.to_owned(), Value::Object(object));
            }
            return;
        }
        let list = reading
            .map
            .entry(child.json)
            .or_insert_with(|| Value::Array(Vec::new()));
        let position = list.as_array().map_or(0, Vec::len);
        let label = child
            .schema
            .label
            .as_ref()
            .and_then(|_| block.labels.first());
        let path = match label {
            Some((label, _)) => format!("{path}[{label:?}]"),
            None => format!("{path}[{position}]"),
        };
        let object = self.block(block, child.schema, &path, scope, out);
        if let Some(Value::Array(list)) = reading.map.get_mut(child.json) {
            list.push(Value::Object(object));
        }
    }

    /// Reads `env { A = 1 }`: attributes of any name, converted to texts.
    fn text_map(
        &self,
        content: Content<'_>,
        path: &str,
        scope: &Scope<'_>,
        out: &mut Collector,
    ) -> Map<String, Value> {
        let mut map = Map::new();
        let Some(items) = out.ok_or_fault(content.items(&|_| None)) else {
            return map;
        };
        if let Some(block) = items.blocks.first() {
            let detail = format!("{path} holds name = value only, no blocks");
            out.fault(Fault::new(
                block.header.clone(),
                "Unsupported block type",
                detail,
            ));
        }
        for attribute in items.attributes {
            let range = attribute.expr.range();
            out.place(&join(path, attribute.name), range.clone());
            let value = attribute.expr.eval(self.text, self.host, scope);
            let value = value.and_then(|value| {
                convert::convert(Kind::Text, attribute.name, &value)
                    .map_err(|(summary, detail)| Fault::new(range, summary, detail))
            });
            match value {
                Ok(Value::Null) => {}
                Ok(value) => drop(map.insert(attribute.name.to_owned(), value)),
                Err(fault) => out.fault(fault),
            }
        }
        map
    }
}

/// Applies the schema's `finish`.
fn finish(
    mut reading: Reading<'_>,
    (noun, header): (&str, &Range<usize>),
    out: &mut Collector,
) -> Map<String, Value> {
    let schema = reading.schema;
    if let Some(finish) = schema.finish
        && let Err(detail) = finish(&mut reading.map)
    {
        let summary = format!("Invalid {} {noun}", schema.name);
        out.fault(Fault::new(header.clone(), summary, detail));
    }
    reading.map
}

/// Reports a duplicate of a unique block; returns false for one.
fn once(
    name: &'static str,
    block: &Block<'_>,
    reading: &mut Reading<'_>,
    out: &mut Collector,
) -> bool {
    let Some(earlier) = reading.seen.get(name) else {
        reading.seen.insert(name, block.header.clone());
        return true;
    };
    let (line, column) = out.source.position(earlier.start);
    let (_, end) = out.source.position(earlier.end);
    let detail = format!(
        "Only one block of type {name:?} is allowed. Previous definition was at \
         {}:{line},{column}-{end}: merge the two",
        out.source.file,
    );
    out.fault(Fault::new(
        block.header.clone(),
        format!("Duplicate {name} block"),
        detail,
    ));
    false
}
