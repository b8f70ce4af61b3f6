//! Sets, which are lists without duplicates: `distinct setintersection setproduct setunion`.

use std::collections::HashSet;

use super::call::Call;
use super::collection::sort_key;
use super::function::Function;
use crate::language::meter::weight;
use crate::language::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "distinct",
        parameters: "list",
        call: distinct,
    },
    Function {
        name: "setintersection",
        parameters: "set, set…",
        call: setintersection,
    },
    Function {
        name: "setproduct",
        parameters: "set, set…",
        call: setproduct,
    },
    Function {
        name: "setunion",
        parameters: "set, set…",
        call: setunion,
    },
];

fn distinct(call: &Call<'_>) -> Result<Value, String> {
    Ok(Value::Array(without_duplicates(call.list(0)?.to_vec())))
}

/// Keeps the first of equal values, in their order.
fn without_duplicates(mut items: Vec<Value>) -> Vec<Value> {
    // Values have no order or hash, but their JSON texts have.
    let mut seen = HashSet::new();
    items.retain(|item| seen.insert(item.to_string()));
    items
}

/// Returns `items` as a set: sorted, without duplicates.
pub(crate) fn set(items: Vec<Value>) -> Vec<Value> {
    let mut items = without_duplicates(items);
    items.sort_by_cached_key(sort_key);
    items
}

fn setunion(call: &Call<'_>) -> Result<Value, String> {
    let mut all = Vec::new();
    for position in 0..call.arguments.len() {
        all.extend_from_slice(call.list(position)?);
    }
    Ok(Value::Array(set(all)))
}

fn setintersection(call: &Call<'_>) -> Result<Value, String> {
    let mut common = call.list(0)?.to_vec();
    for position in 1..call.arguments.len() {
        let other: HashSet<String> = call.list(position)?.iter().map(Value::to_string).collect();
        common.retain(|item| other.contains(&item.to_string()));
    }
    Ok(Value::Array(set(common)))
}

fn setproduct(call: &Call<'_>) -> Result<Value, String> {
    if call.arguments.len() < 2 {
        return Err("it takes two sets or more".to_owned());
    }
    let mut rows: Vec<Vec<Value>> = vec![Vec::new()];
    for position in 0..call.arguments.len() {
        let items = call.list(position)?;
        let row_weight: usize = rows.iter().flatten().map(weight).sum();
        let item_weight: usize = items.iter().map(weight).sum();
        // Every row is copied once per item, and every item once per row.
        let new = row_weight.saturating_mul(items.len());
        call.pay(new.saturating_add(item_weight.saturating_mul(rows.len())))?;
        let longer = rows.iter().flat_map(|row| {
            items.iter().map(|item| {
                let mut longer = row.clone();
                longer.push(item.clone());
                longer
            })
        });
        rows = longer.collect();
    }
    Ok(rows.into_iter().map(Value::Array).collect())
}
