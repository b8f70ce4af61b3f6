//! Files with one root block, variables and locals, such as job files.

mod names;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::names::Names;
use crate::collector::Collector;
use crate::document::json::{Json, Node};
use crate::document::{Block, Content, Items};
use crate::expand::Expander;
use crate::inputs::Inputs;
use crate::language::Scope;
use crate::language::eval::{Host, UnknownNames};
use crate::language::syntax;
use crate::schema::Schema;
use crate::source::Fault;
use crate::variables;
use crate::variables::locals::Locals;
use suggest::{hint, list};

/// The blocks that may stand beside the root block.
const INPUT_BLOCKS: [&str; 3] = ["variable", "variables", "locals"];

/// Returns the root block of an HCL text with the keys of its schema; errors go to `out`.
pub fn read_hcl(root: &'static Schema, inputs: &Inputs, out: &mut Collector) -> Map<String, Value> {
    let source = Arc::clone(&out.source);
    match syntax::body(&source.text) {
        Ok(body) => read(Content::Hcl(&body), root, inputs, out),
        Err(fault) => {
            out.fault(fault);
            Map::new()
        }
    }
}

/// Like [`read_hcl`], for HCL's JSON syntax.
pub fn read_json(
    json: &Json,
    root: &'static Schema,
    inputs: &Inputs,
    out: &mut Collector,
) -> Map<String, Value> {
    read(Content::Json(json), root, inputs, out)
}

/// Tells HCL's JSON syntax from other JSON by the blocks at its top level.
pub fn is_hcl_json(json: &Json, root: &'static Schema) -> bool {
    match &json.node {
        Node::Object(entries) => entries
            .iter()
            .any(|(key, _)| blocks_of(root).contains(&key.name.as_str())),
        _ => false,
    }
}

fn blocks_of(root: &'static Schema) -> [&'static str; 4] {
    let [variable, variables, locals] = INPUT_BLOCKS;
    [root.name, variable, variables, locals]
}

fn read(
    content: Content<'_>,
    root: &'static Schema,
    inputs: &Inputs,
    out: &mut Collector,
) -> Map<String, Value> {
    let labels_of = |kind: &str| match kind {
        "variable" => Some(1),
        "variables" | "locals" => Some(0),
        _ => label_count(root, kind),
    };
    let mut items = match content.items(&labels_of) {
        Ok(items) => items,
        Err(fault) => {
            out.fault(fault);
            return Map::new();
        }
    };
    report_unexpected(&items, root, &blocks_of(root), out);
    let blocks = std::mem::take(&mut items.blocks);
    let (roots, blocks): (Vec<_>, Vec<_>) = blocks
        .into_iter()
        .partition(|block| block.kind == root.name);
    let (local_blocks, mut variable_blocks): (Vec<_>, Vec<_>) =
        blocks.into_iter().partition(|block| block.kind == "locals");
    variable_blocks.retain(|block| INPUT_BLOCKS.contains(&block.kind));

    let host = Host {
        files: inputs.files.clone(),
        unknown_names: UnknownNames::Keep,
        ..Host::default()
    };
    let variable_values = variables::values(&variable_blocks, inputs, &host, out);
    let locals = Locals::read(&local_blocks, out);
    let names = Names {
        variables: variable_values.keys().map(String::as_str).collect(),
        locals: locals.names().collect(),
    };
    for expr in locals.expressions() {
        names.check(&expr, out);
    }
    let block = only_root(&roots, root, out);
    if let Some(block) = block {
        names.check_block(block.content, out);
    }
    // An unknown name would be reported again by each expression that uses it.
    if out.has_errors() {
        return Map::new();
    }
    let Some(block) = block else {
        return Map::new();
    };
    let var = Value::Object(variable_values);
    let local = Value::Object(locals.values(&var, &host, out));
    if out.has_errors() {
        return Map::new();
    }
    let source = Arc::clone(&out.source);
    let expander = Expander {
        root,
        text: &source.text,
        host: &host,
    };
    let names = [("var", &var), ("local", &local)];
    expander.block(block, root, "", &Scope::new(&names), out)
}

/// Returns how many labels the root block has; `None` for other blocks.
pub(crate) fn label_count(root: &'static Schema, kind: &str) -> Option<usize> {
    (kind == root.name).then_some(usize::from(root.label.is_some()))
}

/// Reports attributes and blocks that may not stand at the top of a file.
pub(crate) fn report_unexpected(
    items: &Items<'_>,
    root: &'static Schema,
    expected: &[&str],
    out: &mut Collector,
) {
    let names = || expected.iter().copied();
    for attribute in &items.attributes {
        let detail = format!(
            "An argument named {:?} is not expected here.{} Expected here: blocks of type {}.",
            attribute.name,
            hint(attribute.name, names()),
            list(names(), "and"),
        );
        out.fault(Fault::new(
            attribute.name_range.clone(),
            "Unsupported argument",
            detail,
        ));
    }
    for block in &items.blocks {
        if expected.contains(&block.kind) {
            continue;
        }
        let belongs_in_root = block.kind == "dynamic" || root.block(block.kind).is_some();
        let home = if belongs_in_root {
            format!(" It belongs in the {} block.", root.name)
        } else {
            hint(block.kind, names())
        };
        let detail = format!(
            "Blocks of type {:?} are not expected here.{home} Expected here: {}.",
            block.kind,
            list(names(), "and"),
        );
        out.fault(Fault::new(
            block.header.clone(),
            "Unsupported block type",
            detail,
        ));
    }
}

/// Returns the root block; reports a missing root and duplicates.
pub(crate) fn only_root<'b, 'a>(
    blocks: &'b [Block<'a>],
    root: &'static Schema,
    out: &mut Collector,
) -> Option<&'b Block<'a>> {
    let name = root.name;
    let noun = name.replace('_', " ");
    let Some(first) = blocks.first() else {
        let detail = format!("A {noun} file holds one {name} block: write {name} \"name\" {{ … }}");
        out.fault(Fault::new(0..0, format!("Missing {name} block"), detail));
        return None;
    };
    for other in &blocks[1..] {
        let (line, column) = out.source.position(first.header.start);
        let (_, end) = out.source.position(first.header.end);
        let detail = format!(
            "Only one block of type {name:?} is allowed. Previous definition was at \
             {}:{line},{column}-{end}: write a file per {noun}",
            out.source.file,
        );
        out.fault(Fault::new(
            other.header.clone(),
            format!("Duplicate {name} block"),
            detail,
        ));
    }
    Some(first)
}
