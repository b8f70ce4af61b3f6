//! Sprig's dictionaries. They do not change: a function that changes one gives a new one.

use std::collections::{BTreeMap, BTreeSet};

use super::super::collections::merge;
use crate::function::{Call, Failure, Function, exact, many};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    many("sprig_dict", 0, |call| {
        let mut entries = BTreeMap::new();
        for pair in call.arguments.chunks(2) {
            entries.insert(
                pair[0].to_string().into(),
                pair.get(1).cloned().unwrap_or_else(|| "".into()),
            );
        }
        Ok(Value::map(entries)?)
    }),
    exact("sprig_get", 2, |call| {
        Ok(call
            .map(0)?
            .get(&call.text(1)?)
            .cloned()
            .unwrap_or_else(|| "".into()))
    }),
    exact("sprig_hasKey", 2, |call| {
        Ok(Value::Bool(call.map(0)?.contains_key(&call.text(1)?)))
    }),
    many("sprig_keys", 0, |call| {
        let mut keys = Vec::new();
        for position in 0..call.count() {
            keys.extend(call.map(position)?.into_keys());
        }
        Ok(Value::texts(keys)?)
    }),
    exact("sprig_values", 1, |call| {
        Ok(Value::list(call.map(0)?.into_values().collect())?)
    }),
    many("sprig_pick", 1, |call| keep(call, true)),
    many("sprig_omit", 1, |call| keep(call, false)),
    many("sprig_pluck", 1, |call| {
        let key = call.text(0)?;
        let mut found = Vec::new();
        for position in 1..call.count() {
            found.extend(call.map(position)?.remove(&key));
        }
        Ok(Value::list(found)?)
    }),
    many("sprig_merge", 1, |call| merged(call, false)),
    many("sprig_mustMerge", 1, |call| merged(call, false)),
    many("sprig_mergeOverwrite", 1, |call| merged(call, true)),
    many("sprig_mustMergeOverwrite", 1, |call| merged(call, true)),
    many("sprig_dig", 3, |call| {
        let last = call.count() - 1;
        let mut value = call.value(last).clone();
        for position in 0..last - 1 {
            let key = call.text(position)?;
            match value.as_map().and_then(|map| map.get(&key)) {
                Some(inner) => value = inner.clone(),
                None => return Ok(call.value(last - 1).clone()),
            }
        }
        Ok(value)
    }),
];

fn keep(call: &mut Call<'_>, keeps: bool) -> Result<Value, Failure> {
    let names = call.arguments[1..]
        .iter()
        .map(ToString::to_string)
        .collect::<BTreeSet<_>>();
    let entries = call
        .map(0)?
        .into_iter()
        .filter(|(key, _)| names.contains(&**key) == keeps);
    Ok(Value::map(entries.collect())?)
}

fn merged(call: &mut Call<'_>, overrides: bool) -> Result<Value, Failure> {
    let mut result = call.value(0).clone();
    for position in 1..call.count() {
        let base = result.as_map().ok_or_else(|| call.wrong(0, "a map"))?;
        result = merge(base, &call.map(position)?, overrides)?;
    }
    Ok(result)
}
