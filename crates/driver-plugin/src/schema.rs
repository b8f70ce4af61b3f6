//! Schemas of a plugin: turn a block of settings into the value that the plugin expects.
//!
//! Pure. `types` reads type expressions and converts values, `literal` reads fixed values; `path` names
//! fields. A problem names the field, as in `volumes[0].target`, and the fix.
//!
//! Source: the behaviour that the public documentation of HCL's decoder describes.

mod literal;
mod path;
mod types;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::path::{DEPTH_MAX, join};
use self::types::Type;
use crate::wire::hclspec::{BlockMap, Spec, spec};

type Body = Map<String, Value>;

/// Returns the value of a block: properties by name, absent ones as null.
///
/// # Errors
/// The first field that is unknown, missing or of another type, or an invalid part of the schema.
pub fn decode(spec: &Spec, body: &Body) -> Result<Value, String> {
    check_depth(spec, 0)?;
    decode_body(spec, "", body, "")
}

/// Decodes a body, all of whose names the schema has to know.
fn decode_body(spec: &Spec, name: &str, body: &Body, path: &str) -> Result<Value, String> {
    let mut known = BTreeSet::new();
    collect_names(spec, name, &mut known);
    if let Some(unknown) = body.keys().find(|name| !known.contains(name.as_str())) {
        let known = known.iter().cloned().collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none" } else { &known };
        return Err(format!(
            "{}: unknown option: remove it, or write one of: {known}",
            join(path, unknown)
        ));
    }
    value_of(spec, name, body, path)
}

fn value_of(spec: &Spec, implied: &str, body: &Body, path: &str) -> Result<Value, String> {
    let part = part(spec)?;
    let own = own_name(part, implied);
    let at = join(path, own);
    let found = body.get(own).filter(|value| !value.is_null());
    match part {
        spec::Block::Object(object) => {
            let mut fields = Map::new();
            for (name, nested) in &object.attributes {
                fields.insert(name.clone(), value_of(nested, name, body, path)?);
            }
            Ok(Value::Object(fields))
        }
        spec::Block::Array(array) => {
            let values = array.values.iter();
            values
                .map(|nested| value_of(nested, "", body, path))
                .collect()
        }
        spec::Block::Attr(attr) => match found {
            Some(value) => Type::parse(&attr.r#type)?.convert(value, &at),
            None => absent(attr.required, &at, "a value"),
        },
        spec::Block::BlockValue(block) => {
            let bodies = bodies(found, &at)?;
            match bodies.as_slice() {
                [] => absent(block.required, &at, "a block"),
                [body] => decode_body(nested(block.nested.as_deref())?, "", body, &at),
                more => Err(format!("{at}: {} blocks: write it once", more.len())),
            }
        }
        spec::Block::BlockAttrs(block) => {
            let bodies = bodies(found, &at)?;
            if bodies.is_empty() {
                return absent(block.required, &at, "a block");
            }
            let element = Type::parse(&block.r#type)?;
            let mut fields = Map::new();
            for (name, value) in bodies.into_iter().flatten() {
                let value = element.convert(value, &join(&at, name))?;
                fields.insert(name.clone(), value);
            }
            Ok(Value::Object(fields))
        }
        spec::Block::BlockList(list) => {
            let limits = (list.min_items, list.max_items);
            let found = many(nested(list.nested.as_deref())?, found, limits, &at)?;
            Ok(Value::Array(found))
        }
        spec::Block::BlockSet(set) => {
            let limits = (set.min_items, set.max_items);
            let found = many(nested(set.nested.as_deref())?, found, limits, &at)?;
            Ok(Value::Array(types::without_repetitions(found)))
        }
        spec::Block::BlockMap(map) => labelled(map, found, map.labels.len(), &at),
        spec::Block::Default(default) => {
            let primary = nested(default.primary.as_deref())?;
            match value_of(primary, implied, body, path)? {
                Value::Null => value_of(nested(default.default.as_deref())?, implied, body, path),
                value => Ok(value),
            }
        }
        spec::Block::Literal(literal) => literal::parse(&literal.value),
    }
}

/// Decodes blocks that are written any number of times.
fn many(
    nested: &Spec,
    found: Option<&Value>,
    (least, most): (u64, u64),
    at: &str,
) -> Result<Vec<Value>, String> {
    let bodies = bodies(found, at)?;
    let count = u64::try_from(bodies.len()).unwrap_or(u64::MAX);
    if count < least {
        return Err(format!("{at}: {count} blocks: want at least {least}"));
    }
    if most > 0 && count > most {
        return Err(format!("{at}: {count} blocks: want at most {most}"));
    }
    let numbered = bodies.into_iter().enumerate();
    numbered
        .map(|(number, body)| decode_body(nested, "", body, &format!("{at}[{number}]")))
        .collect()
}

/// Decodes blocks whose labels are levels of a map.
fn labelled(
    map: &BlockMap,
    found: Option<&Value>,
    levels: usize,
    at: &str,
) -> Result<Value, String> {
    let spec = nested(map.nested.as_deref())?;
    let mut fields = Map::new();
    for (label, value) in bodies(found, at)?.into_iter().flatten() {
        let at = join(at, label);
        let value = if levels > 1 {
            labelled(map, Some(value), levels - 1, &at)?
        } else {
            match bodies(Some(value), &at)?.as_slice() {
                [body] => decode_body(spec, "", body, &at)?,
                others => return Err(format!("{at}: {} blocks: write it once", others.len())),
            }
        };
        fields.insert(label.clone(), value);
    }
    Ok(Value::Object(fields))
}

/// Returns the blocks of a value: a block is an object, repeated ones are a list.
fn bodies<'a>(found: Option<&'a Value>, at: &str) -> Result<Vec<&'a Body>, String> {
    let items = match found {
        None => &[],
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let bodies: Option<Vec<&Body>> = items.iter().map(Value::as_object).collect();
    bodies.ok_or_else(|| format!("{at}: want a block: {{ name = value }}"))
}

fn absent(is_required: bool, at: &str, what: &str) -> Result<Value, String> {
    if is_required {
        return Err(format!("{at}: missing: write {what}"));
    }
    Ok(Value::Null)
}

/// Returns the name of a part in the body: its own, or that of the property it is.
fn own_name<'a>(part: &'a spec::Block, implied: &'a str) -> &'a str {
    let own = match part {
        spec::Block::Attr(attr) => &attr.name,
        spec::Block::BlockValue(block) => &block.name,
        spec::Block::BlockAttrs(block) => &block.name,
        spec::Block::BlockList(block) => &block.name,
        spec::Block::BlockSet(block) => &block.name,
        spec::Block::BlockMap(block) => &block.name,
        _ => "",
    };
    if own.is_empty() { implied } else { own }
}

/// Collects the names that a schema reads in its own body.
fn collect_names(spec: &Spec, implied: &str, names: &mut BTreeSet<String>) {
    match &spec.block {
        None | Some(spec::Block::Literal(_)) => {}
        Some(spec::Block::Object(object)) => {
            for (name, nested) in &object.attributes {
                collect_names(nested, name, names);
            }
        }
        Some(spec::Block::Array(array)) => {
            for nested in &array.values {
                collect_names(nested, "", names);
            }
        }
        Some(spec::Block::Default(default)) => {
            for nested in [&default.primary, &default.default].into_iter().flatten() {
                collect_names(nested, implied, names);
            }
        }
        Some(part) => {
            names.insert(own_name(part, implied).to_owned());
        }
    }
}

fn check_depth(spec: &Spec, depth: usize) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err(format!(
            "the plugin's schema has more than {DEPTH_MAX} levels"
        ));
    }
    let check = |nested: Option<&Spec>| match nested {
        Some(nested) => check_depth(nested, depth + 1),
        None => Ok(()),
    };
    match &spec.block {
        Some(spec::Block::Object(object)) => object
            .attributes
            .values()
            .try_for_each(|it| check(Some(it))),
        Some(spec::Block::Array(array)) => array.values.iter().try_for_each(|it| check(Some(it))),
        Some(spec::Block::BlockValue(block)) => check(block.nested.as_deref()),
        Some(spec::Block::BlockList(block)) => check(block.nested.as_deref()),
        Some(spec::Block::BlockSet(block)) => check(block.nested.as_deref()),
        Some(spec::Block::BlockMap(block)) => check(block.nested.as_deref()),
        Some(spec::Block::Default(default)) => {
            check(default.primary.as_deref())?;
            check(default.default.as_deref())
        }
        _ => Ok(()),
    }
}

fn part(spec: &Spec) -> Result<&spec::Block, String> {
    let part = spec.block.as_ref();
    part.ok_or_else(|| "the plugin's schema has an empty part".to_owned())
}

fn nested(spec: Option<&Spec>) -> Result<&Spec, String> {
    spec.ok_or_else(|| "the plugin's schema has a block without content".to_owned())
}

#[cfg(test)]
mod tests;
