//! Lists and objects: `chunklist coalesce coalescelist compact concat contains element flatten
//! index keys length lookup merge range slice sort values zipmap`.

use serde_json::Map;

use super::call::Call;
use super::function::Function;
use crate::language::value::{Value, float, integer, to_float, to_text, type_name, whole};

pub(super) const FUNCTIONS: &[Function] = &[
    Function {
        name: "chunklist",
        parameters: "list, size",
        call: chunklist,
    },
    Function {
        name: "coalesce",
        parameters: "value, value…",
        call: coalesce,
    },
    Function {
        name: "coalescelist",
        parameters: "list, list…",
        call: coalescelist,
    },
    Function {
        name: "compact",
        parameters: "list",
        call: compact,
    },
    Function {
        name: "concat",
        parameters: "list, list…",
        call: concat,
    },
    Function {
        name: "contains",
        parameters: "list, value",
        call: contains,
    },
    Function {
        name: "element",
        parameters: "list, index",
        call: element,
    },
    Function {
        name: "flatten",
        parameters: "list",
        call: |call| Ok(Value::Array(flat(call.list(0)?))),
    },
    Function {
        name: "index",
        parameters: "list, value",
        call: index,
    },
    Function {
        name: "keys",
        parameters: "object",
        call: keys,
    },
    Function {
        name: "length",
        parameters: "value",
        call: length,
    },
    Function {
        name: "lookup",
        parameters: "object, key, default?",
        call: lookup,
    },
    Function {
        name: "merge",
        parameters: "object, object…",
        call: merge,
    },
    Function {
        name: "range",
        parameters: "start, limit?, step?",
        call: range,
    },
    Function {
        name: "slice",
        parameters: "list, start, end",
        call: slice,
    },
    Function {
        name: "sort",
        parameters: "list",
        call: sort,
    },
    Function {
        name: "values",
        parameters: "object",
        call: values,
    },
    Function {
        name: "zipmap",
        parameters: "keys, values",
        call: zipmap,
    },
];

/// Maximum length of a `range`. Source: HCL's limit.
const MAX_RANGE: usize = 1_024;

fn chunklist(call: &Call<'_>) -> Result<Value, String> {
    let items = call.list(0)?;
    let size = usize::try_from(call.whole(1)?).map_err(|_| "the size must not be negative")?;
    if size == 0 {
        return Ok(Value::Array(vec![Value::Array(items.to_vec())]));
    }
    Ok(items
        .chunks(size)
        .map(|chunk| Value::Array(chunk.to_vec()))
        .collect())
}

/// The first argument that is neither null nor an empty text.
fn coalesce(call: &Call<'_>) -> Result<Value, String> {
    let blank = |value: &Value| value.is_null() || value.as_str() == Some("");
    let found = call.arguments.iter().find(|value| !blank(value));
    found
        .cloned()
        .ok_or_else(|| "all of its arguments are null or empty".to_owned())
}

fn coalescelist(call: &Call<'_>) -> Result<Value, String> {
    for position in 0..call.arguments.len() {
        if !call.value(position).is_null() && !call.list(position)?.is_empty() {
            return Ok(call.value(position).clone());
        }
    }
    Err("all of its lists are empty".to_owned())
}

fn compact(call: &Call<'_>) -> Result<Value, String> {
    let kept = call
        .list(0)?
        .iter()
        .filter(|item| !item.is_null() && item.as_str() != Some(""));
    Ok(kept.cloned().collect())
}

fn concat(call: &Call<'_>) -> Result<Value, String> {
    let mut all = Vec::new();
    for position in 0..call.arguments.len() {
        all.extend_from_slice(call.list(position)?);
    }
    Ok(Value::Array(all))
}

fn contains(call: &Call<'_>) -> Result<Value, String> {
    Ok(Value::Bool(call.list(0)?.contains(call.value(1))))
}

/// Wraps around at the end, as in HCL.
fn element(call: &Call<'_>) -> Result<Value, String> {
    let (items, position) = (call.list(0)?, call.whole(1)?);
    if items.is_empty() {
        return Err("the list is empty".to_owned());
    }
    let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let position = usize::try_from(position.rem_euclid(count)).unwrap_or(0);
    Ok(items[position].clone())
}

fn flat(items: &[Value]) -> Vec<Value> {
    let mut all = Vec::new();
    for item in items {
        match item {
            Value::Array(inner) => all.extend(flat(inner)),
            other => all.push(other.clone()),
        }
    }
    all
}

fn index(call: &Call<'_>) -> Result<Value, String> {
    let position = call.list(0)?.iter().position(|item| item == call.value(1));
    position
        .map(Value::from)
        .ok_or_else(|| "the list does not hold this value".to_owned())
}

fn keys(call: &Call<'_>) -> Result<Value, String> {
    Ok(call.object(0)?.keys().cloned().collect())
}

fn values(call: &Call<'_>) -> Result<Value, String> {
    Ok(call.object(0)?.values().cloned().collect())
}

fn length(call: &Call<'_>) -> Result<Value, String> {
    match call.value(0) {
        Value::Array(items) => Ok(Value::from(items.len())),
        Value::Object(entries) => Ok(Value::from(entries.len())),
        Value::String(_) => Err("it counts elements: use strlen for a text".to_owned()),
        other => Err(format!(
            "argument 1 must be a list or an object; got {}",
            type_name(other)
        )),
    }
}

fn lookup(call: &Call<'_>) -> Result<Value, String> {
    let (object, key) = (call.object(0)?, call.text(1)?);
    match object.get(&key) {
        Some(value) => Ok(value.clone()),
        None if call.given(2) => Ok(call.value(2).clone()),
        None => Err(format!(
            "there is no key {key:?}, and no default as third argument"
        )),
    }
}

fn merge(call: &Call<'_>) -> Result<Value, String> {
    let mut all = Map::new();
    for position in 0..call.arguments.len() {
        if !call.value(position).is_null() {
            all.extend(call.object(position)?.clone());
        }
    }
    Ok(Value::Object(all))
}

/// `range(limit)`, `range(start, limit)` or `range(start, limit, step)`.
fn range(call: &Call<'_>) -> Result<Value, String> {
    let zero = || 0.into();
    let (start, limit) = if call.given(1) {
        (call.number(0)?, call.number(1)?)
    } else {
        (zero(), call.number(0)?)
    };
    let (first, last) = (to_float(&start), to_float(&limit));
    let step = match call.given(2) {
        true => call.number(2)?,
        false => if last < first { -1 } else { 1 }.into(),
    };
    let by = to_float(&step);
    if by == 0.0 || (by > 0.0) != (last > first) && last != first {
        return Err("the step must lead from the start to the limit".to_owned());
    }
    let mut items = Vec::new();
    let exact = whole(&start).zip(whole(&step));
    for n in 0_i32.. {
        let position = first + f64::from(n) * by;
        if (by > 0.0 && position >= last) || (by < 0.0 && position <= last) {
            break;
        }
        if items.len() == MAX_RANGE {
            return Err(format!("it makes at most {MAX_RANGE} values"));
        }
        let number = match exact {
            Some((start, step)) => Some(integer(start + i128::from(n) * step)),
            None => float(position),
        };
        items.extend(number.map(Value::Number));
    }
    Ok(Value::Array(items))
}

fn slice(call: &Call<'_>) -> Result<Value, String> {
    let items = call.list(0)?;
    let bounds = (
        usize::try_from(call.whole(1)?),
        usize::try_from(call.whole(2)?),
    );
    let (Ok(start), Ok(end)) = bounds else {
        return Err("start and end must not be negative".to_owned());
    };
    let part = items.get(start..end);
    part.map(|part| Value::Array(part.to_vec())).ok_or_else(|| {
        format!(
            "[{start}, {end}) is not within the {} elements of the list",
            items.len()
        )
    })
}

fn sort(call: &Call<'_>) -> Result<Value, String> {
    let mut texts = call.texts(0)?;
    texts.sort();
    Ok(texts.into_iter().collect())
}

fn zipmap(call: &Call<'_>) -> Result<Value, String> {
    let (keys, values) = (call.texts(0)?, call.list(1)?);
    if keys.len() != values.len() {
        return Err(format!(
            "there are {} keys and {} values",
            keys.len(),
            values.len()
        ));
    }
    Ok(Value::Object(
        keys.into_iter().zip(values.iter().cloned()).collect(),
    ))
}

/// Returns the text of a key for sorting sets.
pub(super) fn sort_key(value: &Value) -> String {
    to_text(value).unwrap_or_else(|| value.to_string())
}
