//! Unexpected names: unsupported, ignored with a warning, misplaced or misspelt.

use crate::collector::Collector;
use crate::document::{Attribute, Block};
use crate::schema::Schema;
use crate::source::Fault;
use suggest::{list, nearest};

pub(super) fn attribute(
    attribute: &Attribute<'_>,
    schema: &'static Schema,
    root: &'static Schema,
    out: &mut Collector,
) {
    let name = attribute.name;
    if let Some(ignored) = schema.ignored(name) {
        return out.warn(ignored.warning);
    }
    let range = attribute.name_range.clone();
    if let Some(refused) = schema.refusal(name) {
        return out.fault(Fault::new(range, "Not supported", refused.message()));
    }
    let mut detail = format!("An argument named {name:?} is not expected here.");
    if schema.block_names().any(|block| block == name) {
        detail.push_str(&format!(
            " Did you mean a block? Write {name} {{ … }} without the =."
        ));
    } else {
        detail.push_str(&suggestion(
            name,
            schema,
            root,
            schema.attribute_names().collect(),
        ));
    }
    detail.push_str(&expected(schema.attribute_names().collect()));
    out.fault(Fault::new(range, "Unsupported argument", detail));
}

pub(super) fn block(
    block: &Block<'_>,
    schema: &'static Schema,
    root: &'static Schema,
    out: &mut Collector,
) {
    let name = block.kind;
    if let Some(ignored) = schema.ignored(name) {
        return out.warn(ignored.warning);
    }
    let range = block.header.clone();
    if let Some(refused) = schema.refusal(name) {
        return out.fault(Fault::new(range, "Not supported", refused.message()));
    }
    let mut detail = format!("Blocks of type {name:?} are not expected here.");
    if schema.attribute(name).is_some() {
        detail.push_str(&format!(" Did you mean an argument? Write {name} = ….",));
    } else {
        detail.push_str(&suggestion(
            name,
            schema,
            root,
            schema.block_names().collect(),
        ));
    }
    detail.push_str(&expected(schema.block_names().collect()));
    out.fault(Fault::new(range, "Unsupported block type", detail));
}

/// Returns the block in which the name belongs, or else the nearest known name.
fn suggestion(
    name: &str,
    schema: &'static Schema,
    root: &'static Schema,
    known: Vec<&'static str>,
) -> String {
    // A name that exists elsewhere is misplaced rather than misspelt.
    let mut blocks = Vec::new();
    blocks_with(name, root, &mut blocks);
    blocks.retain(|block| *block != schema.name);
    if !blocks.is_empty() {
        return format!(" It belongs in a block of type {}.", list(blocks, "or"));
    }
    match nearest(name, known) {
        Some(meant) => format!(" Did you mean {meant:?}?"),
        None => String::new(),
    }
}

/// Collects the blocks that have an attribute or block of this name, each once.
fn blocks_with(name: &str, schema: &'static Schema, blocks: &mut Vec<&'static str>) {
    let here = schema.attribute(name).is_some() || schema.block(name).is_some();
    if here && !blocks.contains(&schema.name) {
        blocks.push(schema.name);
    }
    for child in schema.hcl_blocks() {
        blocks_with(name, child.schema, blocks);
    }
}

fn expected(names: Vec<&'static str>) -> String {
    if names.is_empty() {
        return String::new();
    }
    format!(" Expected here: {}.", list(names, "and"))
}
