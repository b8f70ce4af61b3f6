//! Sprig's lists.

use crate::function::{Call, Failure, Function, exact, many};
use crate::value::Value;

pub(super) const FUNCTIONS: &[Function] = &[
    many("sprig_list", 0, |call| {
        Ok(Value::list(call.arguments.clone())?)
    }),
    many("sprig_tuple", 0, |call| {
        Ok(Value::list(call.arguments.clone())?)
    }),
    exact("sprig_first", 1, |call| {
        Ok(call.list(0)?.items.first().cloned().unwrap_or(Value::Nil))
    }),
    exact("sprig_mustFirst", 1, |call| {
        Ok(call.list(0)?.items.first().cloned().unwrap_or(Value::Nil))
    }),
    exact("sprig_last", 1, |call| {
        Ok(call.list(0)?.items.last().cloned().unwrap_or(Value::Nil))
    }),
    exact("sprig_mustLast", 1, |call| {
        Ok(call.list(0)?.items.last().cloned().unwrap_or(Value::Nil))
    }),
    exact("sprig_rest", 1, rest),
    exact("sprig_mustRest", 1, rest),
    exact("sprig_initial", 1, initial),
    exact("sprig_mustInitial", 1, initial),
    exact("sprig_append", 2, append),
    exact("sprig_mustAppend", 2, append),
    exact("sprig_push", 2, append),
    exact("sprig_mustPush", 2, append),
    exact("sprig_prepend", 2, prepend),
    exact("sprig_mustPrepend", 2, prepend),
    many("sprig_concat", 0, |call| {
        let mut items = Vec::new();
        for position in 0..call.count() {
            items.extend(call.list(position)?.items.iter().cloned());
        }
        Ok(Value::list(items)?)
    }),
    exact("sprig_reverse", 1, reverse),
    exact("sprig_mustReverse", 1, reverse),
    exact("sprig_uniq", 1, unique),
    exact("sprig_mustUniq", 1, unique),
    many("sprig_without", 1, without),
    many("sprig_mustWithout", 1, without),
    exact("sprig_has", 2, has),
    exact("sprig_mustHas", 2, has),
    exact("sprig_compact", 1, compact),
    exact("sprig_mustCompact", 1, compact),
    many("sprig_slice", 1, slice),
    many("sprig_mustSlice", 1, slice),
    exact("sprig_chunk", 2, chunk),
    exact("sprig_mustChunk", 2, chunk),
    exact("sprig_sortAlpha", 1, |call| {
        let mut words = call.printed_list(0)?;
        words.sort();
        Ok(Value::texts(words)?)
    }),
    exact("sprig_toStrings", 1, |call| {
        Ok(Value::texts(call.printed_list(0)?)?)
    }),
    exact("sprig_join", 2, |call| match call.value(1) {
        Value::List(_) => super::super::text::join(call, 0, 1),
        value => Ok(value.to_string().into()),
    }),
];

fn rest(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::list(
        call.list(0)?.items.iter().skip(1).cloned().collect(),
    )?)
}

fn initial(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = call.list(0)?;
    Ok(Value::list(
        list.items[..list.items.len().saturating_sub(1)].to_vec(),
    )?)
}

fn append(call: &mut Call<'_>) -> Result<Value, Failure> {
    let mut items = call.list(0)?.items.clone();
    items.push(call.value(1).clone());
    Ok(Value::list(items)?)
}

fn prepend(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = call.list(0)?;
    Ok(Value::list(
        std::iter::once(call.value(1))
            .chain(&list.items)
            .cloned()
            .collect(),
    )?)
}

fn reverse(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::list(
        call.list(0)?.items.iter().rev().cloned().collect(),
    )?)
}

fn unique(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = call.list(0)?;
    call.pay_for_pairs(0, list.items.len())?;
    let mut items: Vec<Value> = Vec::new();
    for item in &list.items {
        if !items.contains(item) {
            items.push(item.clone());
        }
    }
    Ok(Value::list(items)?)
}

fn without(call: &mut Call<'_>) -> Result<Value, Failure> {
    call.pay_for_pairs(0, call.count())?;
    let (list, unwanted) = (call.list(0)?, &call.arguments[1..]);
    Ok(Value::list(
        list.items
            .iter()
            .filter(|item| !unwanted.contains(item))
            .cloned()
            .collect(),
    )?)
}

fn has(call: &mut Call<'_>) -> Result<Value, Failure> {
    if call.value(1).is_nil() {
        return Ok(Value::Bool(false));
    }
    Ok(Value::Bool(call.list(1)?.items.contains(call.value(0))))
}

fn compact(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::list(
        call.list(0)?
            .items
            .iter()
            .filter(|item| item.is_true())
            .cloned()
            .collect(),
    )?)
}

fn slice(call: &mut Call<'_>) -> Result<Value, Failure> {
    let list = call.list(0)?;
    let start = if call.count() > 1 { call.size(1)? } else { 0 };
    let end = if call.count() > 2 {
        call.size(2)?
    } else {
        list.items.len()
    };
    let items = list.items.get(start..end).ok_or_else(|| {
        format!(
            "{start} to {end} is out of range: there are {}",
            list.items.len()
        )
    })?;
    Ok(Value::list(items.to_vec())?)
}

fn chunk(call: &mut Call<'_>) -> Result<Value, Failure> {
    let (size, list) = (call.size(0)?.max(1), call.list(1)?);
    let chunks = list
        .items
        .chunks(size)
        .map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::list(chunks.collect::<Result<_, _>>()?)?)
}
