//! Functions of lists and maps.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::builtin::same_number;
use crate::function::{Call, Failure, Function, between, exact};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    exact("in", 2, |call| {
        Ok(Value::Bool(holds(call, 0, call.value(1))?))
    }),
    exact("contains", 2, |call| {
        Ok(Value::Bool(holds(call, 1, call.value(0))?))
    }),
    exact("containsAll", 2, |call| {
        found(call, |found, wanted| found == wanted)
    }),
    exact("containsAny", 2, |call| found(call, |found, _| found > 0)),
    exact("containsNone", 2, |call| found(call, |found, _| found == 0)),
    exact("containsNotAll", 2, |call| {
        found(call, |found, wanted| found < wanted)
    }),
    exact("explode", 1, |call| {
        let mut root = Tree::default();
        match call.value(0) {
            value if value.is_nil() => {}
            Value::List(list) => {
                for pair in &list.items {
                    if let Value::Record(record) = pair
                        && let (Some(path), Some(value)) = (
                            record.fields.get("Key").and_then(Value::as_text),
                            record.fields.get("Value"),
                        )
                    {
                        root.insert(path, value.clone());
                    } else {
                        return Err("an element of the list is not a pair of key and value, as ls and tree give them".into());
                    }
                }
            }
            _ => return Err(call.wrong(0, "a list of pairs")),
        }
        Ok(root.into_value()?)
    }),
    exact("explodeMap", 1, |call| {
        let mut root = Tree::default();
        for (path, value) in call.map(0)? {
            root.insert(&path, value);
        }
        Ok(root.into_value()?)
    }),
    exact("mergeMap", 2, |call| {
        Ok(merge(&call.map(0)?, &call.map(1)?, false)?)
    }),
    exact("mergeMapWithOverride", 2, |call| {
        Ok(merge(&call.map(0)?, &call.map(1)?, true)?)
    }),
    exact("byKey", 1, by_key),
    exact("byTag", 1, |call| {
        group(call, 0, |record| match record.get("Tags") {
            Some(Value::List(tags)) => Some(tags.items.iter().map(ToString::to_string).collect()),
            _ => None,
        })
    }),
    exact("byPort", 1, |call| {
        group(call, 0, |record| {
            Some(vec![record.get("Port")?.to_string()])
        })
    }),
    exact("byMeta", 2, |call| {
        let keys = call.text(0)?;
        group(call, 1, |record| {
            let meta = record.get("ServiceMeta")?.as_map()?;
            let words: Vec<_> = keys
                .split(',')
                .map(|key| {
                    meta.get(key.trim())
                        .map(ToString::to_string)
                        .unwrap_or_default()
                })
                .collect();
            Some(vec![words.join("_")])
        })
    }),
    between("loop", 1, 2, |call| {
        Ok(if call.count() == 1 {
            Value::Loop(0, call.int(0)?)
        } else {
            Value::Loop(call.int(0)?, call.int(1)?)
        })
    }),
];

/// Pairs by the first part of their keys, each under the rest of its key.
fn by_key(call: &mut Call<'_>) -> Result<Value, Failure> {
    let items = match call.value(0) {
        value if value.is_nil() => return Ok(Value::map(BTreeMap::new())?),
        Value::List(list) => &list.items,
        _ => return Err(call.wrong(0, "a list of pairs")),
    };
    let mut groups: BTreeMap<Rc<str>, BTreeMap<Rc<str>, Value>> = BTreeMap::new();
    for item in items {
        let fields = match item {
            Value::Record(record) => &record.fields,
            _ => return Err(call.wrong(0, "a list of pairs")),
        };
        let key = fields.get("Key").and_then(Value::as_text);
        let key: &str = key.ok_or("an element of the list has no such field")?;
        let (first, rest) = key.split_once('/').unwrap_or((key, ""));
        let mut pair = fields.clone();
        pair.insert("Key", Value::text(rest));
        let group = groups.entry(first.into()).or_default();
        group.insert(rest.into(), Value::record(pair));
    }
    let entries = groups
        .into_iter()
        .map(|(first, pairs)| Ok((first, Value::map(pairs)?)));
    Ok(Value::map(entries.collect::<Result<_, String>>()?)?)
}

fn holds(call: &Call<'_>, collection: usize, wanted: &Value) -> Result<bool, Failure> {
    match call.value(collection) {
        value if value.is_nil() => Ok(false),
        Value::List(list) => Ok(list.items.iter().any(|item| same_number(item, wanted))),
        value => match (value.as_text(), value.as_map(), wanted.as_text()) {
            (Some(text), _, Some(part)) => Ok(text.contains(&**part)),
            (None, Some(map), Some(key)) => Ok(map.contains_key(key)),
            (None, Some(_), None) => Ok(false),
            _ => Err(call.wrong(collection, "a text, list or map")),
        },
    }
}

/// Counts the wanted values (the first argument) that are in the list (the second), and lets `accept` judge.
fn found(call: &mut Call<'_>, accept: fn(usize, usize) -> bool) -> Result<Value, Failure> {
    let (wanted, list) = (call.list(0)?, call.list(1)?);
    call.pay_for_pairs(1, wanted.items.len())?;
    let found = wanted
        .items
        .iter()
        .filter(|wanted| list.items.iter().any(|item| same_number(item, wanted)))
        .count();
    Ok(Value::Bool(accept(found, wanted.items.len())))
}

/// A map of lists: each record under each of its keys.
fn group(
    call: &Call<'_>,
    list: usize,
    keys: impl Fn(&BTreeMap<&'static str, Value>) -> Option<Vec<String>>,
) -> Result<Value, Failure> {
    let items = match call.value(list) {
        value if value.is_nil() => return Ok(Value::map(BTreeMap::new())?),
        Value::List(list) => &list.items,
        _ => return Err(call.wrong(list, "a list of services or pairs")),
    };
    let mut groups: BTreeMap<Rc<str>, Vec<Value>> = BTreeMap::new();
    for item in items {
        let fields = match item {
            Value::Record(record) => &record.fields,
            _ => return Err(call.wrong(list, "a list of services or pairs")),
        };
        let keys = keys(fields).ok_or("an element of the list has no such field")?;
        for key in keys {
            groups.entry(key.into()).or_default().push(item.clone());
        }
    }
    let entries = groups
        .into_iter()
        .map(|(key, items)| Ok((key, Value::list(items)?)));
    Ok(Value::map(entries.collect::<Result<_, String>>()?)?)
}

/// Both maps in one. An entry of both is the base's, or with `overrides` the other's; maps in maps are merged alike.
pub(super) fn merge(
    base: &BTreeMap<Rc<str>, Value>,
    other: &BTreeMap<Rc<str>, Value>,
    overrides: bool,
) -> Result<Value, String> {
    let mut merged = base.clone();
    for (key, value) in other {
        let value = match (base.get(key), value) {
            (Some(Value::Map(old)), Value::Map(new)) => {
                merge(&old.entries, &new.entries, overrides)?
            }
            (Some(old), _) if !overrides && old.is_true() => continue,
            _ => value.clone(),
        };
        merged.insert(Rc::clone(key), value);
    }
    Value::map(merged)
}

/// Keys with slashes as maps in maps. A value stands below an empty key if its path has children too.
#[derive(Default)]
struct Tree {
    value: Option<Value>,
    children: BTreeMap<Rc<str>, Tree>,
}

impl Tree {
    fn insert(&mut self, path: &str, value: Value) {
        let mut tree = self;
        // Deeper keys stay in one name: values have bounded depth.
        for part in path.trim_matches('/').splitn(32, '/') {
            tree = tree.children.entry(part.into()).or_default();
        }
        tree.value = Some(value);
    }

    fn into_value(self) -> Result<Value, String> {
        let mut entries = BTreeMap::new();
        for (name, child) in self.children {
            let value = match child {
                Self {
                    value: Some(value),
                    children,
                } if children.is_empty() => value,
                mut child => {
                    if let Some(value) = child.value.take() {
                        child.children.insert(
                            "".into(),
                            Self {
                                value: Some(value),
                                children: BTreeMap::new(),
                            },
                        );
                    }
                    child.into_value()?
                }
            };
            entries.insert(name, value);
        }
        Value::map(entries)
    }
}
