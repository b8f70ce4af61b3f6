//! Functions that look data up in Consul. Their arguments are read by the source.

use std::collections::BTreeMap;

use super::ask::ask;
use crate::function::{Call, Failure};
use crate::source::{Answer, Data, Lookup};
use crate::value::Value;

/// A value that has to exist: the rendering waits for it.
pub(super) fn text(call: &mut Call<'_>) -> Result<Value, Failure> {
    or(call, "".into())
}

pub(super) fn nil(call: &mut Call<'_>) -> Result<Value, Failure> {
    or(call, Value::Nil)
}

pub(super) fn list(call: &mut Call<'_>) -> Result<Value, Failure> {
    or(call, Value::list(Vec::new())?)
}

/// As [`list`], and the rendering waits while the list is empty.
pub(super) fn filled_list(call: &mut Call<'_>) -> Result<Value, Failure> {
    let found = list(call)?;
    if matches!(&found, Value::List(list) if list.items.is_empty()) {
        let lookup = lookup(call);
        call.interpreter.wait_for(lookup);
    }
    Ok(found)
}

pub(super) fn exists(call: &mut Call<'_>) -> Result<Value, Failure> {
    Ok(Value::Bool(known(call)?.is_some()))
}

/// A missing key and an empty value are both the default.
pub(super) fn or_default(call: &mut Call<'_>) -> Result<Value, Failure> {
    let default = call.value(1).clone();
    call.arguments.truncate(1);
    let found = known(call)?;
    let is_empty = |value: &Value| value.as_text().is_none_or(|text| text.is_empty());
    Ok(found.filter(|value| !is_empty(value)).unwrap_or(default))
}

fn or(call: &mut Call<'_>, empty: Value) -> Result<Value, Failure> {
    let lookup = lookup(call);
    match ask(call, lookup)? {
        Some(Answer::Data(data)) => Ok(value(data)?),
        Some(_) => Err("the source gave no data of Consul".into()),
        None => Ok(empty),
    }
}

/// The data, or none if it is known not to exist. The rendering waits while neither is known.
fn known(call: &mut Call<'_>) -> Result<Option<Value>, Failure> {
    let lookup = lookup(call);
    match call.interpreter.context().source.look_up(&lookup) {
        Answer::Data(data) => Ok(Some(value(data)?)),
        Answer::Absent => Ok(None),
        Answer::Missing => {
            call.interpreter.wait_for(lookup);
            Ok(None)
        }
        _ => Err("the source gave no data of Consul".into()),
    }
}

fn lookup(call: &Call<'_>) -> Lookup {
    Lookup::Consul {
        function: call.name,
        arguments: call.arguments.iter().map(ToString::to_string).collect(),
    }
}

fn value(data: Data) -> Result<Value, String> {
    Ok(match data {
        Data::Nil => Value::Nil,
        Data::Int(number) => Value::Int(number),
        Data::Uint(number) => Value::Uint(number),
        Data::Bool(is_true) => Value::Bool(is_true),
        Data::Text(text) => text.into(),
        Data::List(items) => {
            let items: Result<_, String> = items.into_iter().map(value).collect();
            Value::list(items?)?
        }
        Data::Map(entries) => {
            let entries = entries.into_iter();
            let entries: Result<BTreeMap<_, _>, String> = entries
                .map(|(key, data)| Ok((key.into(), value(data)?)))
                .collect();
            Value::map(entries?)?
        }
        Data::Record(fields) => {
            let fields = fields.into_iter();
            let fields: Result<Vec<_>, String> = fields
                .map(|(name, data)| Ok((name, value(data)?)))
                .collect();
            Value::record(fields?)
        }
    })
}
